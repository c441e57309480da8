# shellcheck shell=sh
# Packages, repositories, keys, locks and automatic upgrades.

PACKAGES='nvidia|libcuda|cuda|docker|containerd|moby|^runc|^cri-|podman|kube|^dkms|^linux-(image|headers|generic|modules-nvidia)|^linux(-lts|-zen|-hardened|-rt|-rt-lts)?(-headers)?( |$)|^kernel|mokutil|shim|dracut|initramfs-tools|unattended-upgrades|dnf-automatic|^gcc|^make|^(gnupg2?|gpg2?|nvlsm|curl|curl-minimal|wget|ca-certificates|epel-release)$|versionlock|[[:blank:]].([UFHWt]R?|iR) ?$'

do_listing() { # SECTION: of all that its list_SECTION prints, what the product asks about (packages/probe.py puts those here)
  "list_$1" >"$T/$1.all" || return $?
  grep -E "$PACKAGES" "$T/$1.all" || :
}

sources() { # paths of repository files and pins that name NVIDIA or gpunode
  set -f # the words are globs below $R, not here
  for glob in $SOURCE_FILES; do
    set +f
    for path in "$R"$glob; do
      [ -f "$path" ] || continue
      case ${path##*/} in *gpunode*) echo "$path" ;; esac
      [ -r "$path" ] && located "${path#"$R"}" && set -- "$@" "$path"
    done
  done
  set +f
  [ $# -gt 0 ] && grep -liE 'nvidia|cuda' "$@"
  return 0
}

telling_keys() { # paths of key files with telling names
  set -f
  for glob in /usr/share/keyrings/* $KEY_FILES; do
    set +f
    for path in "$R"$glob; do
      case $path in *nvidia* | *NVIDIA* | *cuda* | *gpunode*) echo "$path" ;; esac
    done
  done
  set +f
}

keyrings() {
  telling_keys >"$T/telling"
  while read -r path; do
    [ -f "$path" ] && [ -r "$path" ] && set -- "$@" "$path"
  done <"$T/telling"
  [ $# -gt 0 ] && sha256sum "$@" 2>/dev/null | sed "s|  $R|  |"
  return 0
}

key_files() { # PATH BASE64 of what $T/sources trusts and of key files with telling names, that only root can write
  {
    while read -r path; do
      grep -hoiE '(signed-by|gpgkey)[[:space:]]*[=:][^]]*' "$R$path" | sed 's/^[^=:]*[=:]//; s|file://||g' | tr ', \t' '\n\n\n'
    done <"$T/sources"
    telling_keys | sed "s|^$R||"
  } | sort -u | sed 64q | while read -r path; do
    case $path in *..*) continue ;; /etc/* | /usr/*) ;; *) continue ;; esac
    trusted "$path" || continue
    real=$R$REAL
    case $REAL in /etc/* | /usr/*) ;; *) continue ;; esac
    [ -n "$(find "$real" -prune -type f -user 0 ! -perm -020 ! -perm -002 -size -64)" ] || continue # blocks of 512 bytes
    printf '%s %s\n' "$path" "$(base64 <"$real" | tr -d '\n')"
  done
}

package_lock() { # PID COMMAND PATH: fcntl locks are named by inode in /proc/locks; others are files that hold a pid
  for path in $PID_FILES; do
    word "$R$path"
    case $WORD in *[!0-9]* | '') continue ;; esac
    pid=$WORD
    [ -d "$R/proc/$pid" ] || continue
    word "$R/proc/$pid/comm"
    echo "$pid $WORD $path"
  done
  for path in $LOCK_FILES; do
    [ -e "$R$path" ] && set -- "$@" "$R$path"
  done
  [ $# -gt 0 ] && [ -r "$R/proc/locks" ] || return 0
  ls -i "$@" 2>/dev/null | while read -r inode path; do
    sed -n "s/^[0-9]*: *[A-Z]* *[A-Z]* *WRITE *\([0-9]*\) [^ ]*:$inode .*/\1/p" "$R/proc/locks" | while read -r pid; do
      # Any user may lock a file of their own that has the same number on another file system.
      grep -qs '^Uid:[[:space:]]*[1-9]' "$R/proc/$pid/status" && continue
      word "$R/proc/$pid/comm"
      echo "$pid $WORD ${path#"$R"}"
    done
  done
}

auto_upgrade() {
  [ -d "$R/etc/apt/apt.conf.d" ] && grep -hsE '^[^/#]*APT::Periodic::(Unattended-Upgrade|Enable)' "$R"/etc/apt/apt.conf.d/*
  [ -r "$R/etc/dnf/automatic.conf" ] && grep -E '^[[:space:]]*apply_updates' "$R/etc/dnf/automatic.conf"
  return 0
}

apt_archives() { # live lines of .list files, then the .sources files with a blank line between; passwords in addresses masked
  [ -d "$R/etc/apt" ] || return 0
  for path in "$R/etc/apt/sources.list" "$R"/etc/apt/sources.list.d/*.list; do
    [ -f "$path" ] && located "${path#"$R"}" && set -- "$@" "$path"
  done
  {
    [ $# = 0 ] || grep -hsE '^[[:space:]]*deb[[:space:]]' "$@"
    for path in "$R"/etc/apt/sources.list.d/*.sources; do
      [ -f "$path" ] && [ -r "$path" ] && located "${path#"$R"}" && echo && grep -iE '^(Types|URIs|Suites|Components|Signed-By|Enabled):|^[[:space:]]*$' "$path"
    done
  } | sed 's|://[^/@[:space:]]*@|://***@|g'
  return 0
}
