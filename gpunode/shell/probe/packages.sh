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
      case ${path##*/} in *gpunode*) printf '%s\n' "${path#"$R"}"; continue ;; esac
      [ -r "$path" ] && located "${path#"$R"}" && set -- "$@" "$path"
    done
  done
  set +f
  [ $# -gt 0 ] && unrooted grep -liE 'nvidia|cuda' "$@"
  return 0
}

telling_keys() { # -> $T/telling: paths of key files with telling names
  set -f
  for glob in /usr/share/keyrings/* $KEY_FILES; do
    set +f
    for path in "$R"$glob; do
      case $path in *nvidia* | *NVIDIA* | *cuda* | *gpunode*) printf '%s\n' "${path#"$R"}" ;; esac
    done
  done >"$T/telling"
  set +f
}

keyrings() {
  telling_keys
  while IFS= read -r path; do
    [ -f "$R$path" ] && [ -r "$R$path" ] && set -- "$@" "$R$path"
  done <"$T/telling"
  [ $# -gt 0 ] || return 0
  if [ -n "$R" ]; then sha256sum "$@" 2>/dev/null | sed "s|  $R|  |"; else sha256sum "$@" 2>/dev/null; fi
}

named_keys() { # of the files in $T/sources
  while IFS= read -r path; do set -- "$@" "$R$path"; done <"$T/sources"
  [ $# = 0 ] || grep -hoiE '(signed-by|gpgkey)[[:space:]]*[=:][^]]*' "$@" | sed 's/^[^=:]*[=:]//; s|file://||g' | tr ', \t' '\n\n\n'
}

key_files() { # PATH BASE64 of what $T/sources trusts and of key files with telling names, that only root can write
  named_keys >>"$T/telling"
  known=$NL count=0
  while IFS= read -r path; do
    case $known in *"$NL$path$NL"*) continue ;; esac
    known=$known$path$NL
    case $path in *..*) continue ;; /etc/* | /usr/*) ;; *) continue ;; esac
    count=$((count + 1))
    [ "$count" -le 64 ] || return 0
    trusted "$path" || continue
    real=$R$REAL
    case $REAL in /etc/* | /usr/*) ;; *) continue ;; esac
    [ -n "$(find "$real" -prune -type f -user 0 ! -perm -020 ! -perm -002 -size -64)" ] || continue # blocks of 512 bytes
    base64 <"$real" >"$T/base64"
    key=
    while read -r line; do key=$key$line; done <"$T/base64"
    printf '%s %s\n' "$path" "$key"
  done <"$T/telling"
}

package_lock() { # PID COMMAND PATH: fcntl locks are named by inode in /proc/locks; others are files that hold a pid
  for path in $PID_FILES; do
    word "$R$path"
    case $WORD in *[!0-9]* | '') continue ;; esac
    pid=$WORD
    [ -d "$R/proc/$pid" ] || continue
    word "$R/proc/$pid/comm"
    printf '%s %s %s\n' "$pid" "$WORD" "$path"
  done
  for path in $LOCK_FILES; do
    [ -e "$R$path" ] && set -- "$@" "$R$path"
  done
  [ $# -gt 0 ] && [ -r "$R/proc/locks" ] || return 0
  ls -i "$@" >"$T/inodes" 2>/dev/null
  # 1: POSIX  ADVISORY  WRITE 812 fd:00:1234 0 EOF
  awk 'NR == FNR { inode = $1; sub(/^ *[0-9]+ /, ""); path[inode] = $0; next }
    $4 == "WRITE" { count = split($6, part, ":"); if (count == 3 && part[3] in path) print $5, path[part[3]] }' \
    "$T/inodes" "$R/proc/locks" >"$T/holders"
  while read -r pid path; do
    # Any user may lock a file of their own that has the same number on another file system.
    grep -qs '^Uid:[[:space:]]*[1-9]' "$R/proc/$pid/status" && continue
    word "$R/proc/$pid/comm"
    printf '%s %s %s\n' "$pid" "$WORD" "${path#"$R"}"
  done <"$T/holders"
}

auto_upgrade() {
  [ -d "$R/etc/apt/apt.conf.d" ] && grep -hsE '^[^/#]*APT::Periodic::(Unattended-Upgrade|Enable)' "$R"/etc/apt/apt.conf.d/*
  [ -r "$R/etc/dnf/automatic.conf" ] && grep -E '^[[:space:]]*apply_updates' "$R/etc/dnf/automatic.conf"
  return 0
}

apt_archives() { # live lines of .list files, then the .sources files with a blank line between; passwords in addresses masked
  [ -d "$R/etc/apt" ] || return 0
  for path in "$R/etc/apt/sources.list" "$R"/etc/apt/sources.list.d/*.list; do
    [ -f "$path" ] && [ -r "$path" ] && located "${path#"$R"}" && set -- "$@" "$path"
  done
  for path in "$R"/etc/apt/sources.list.d/*.sources; do
    [ -f "$path" ] && [ -r "$path" ] && located "${path#"$R"}" && set -- "$@" "$path"
  done
  [ $# -gt 0 ] || return 0
  # mawk of Debian 10 knows no [[:space:]]
  awk '{ gsub(/:\/\/[^\/@ \t]*@/, "://***@") }
    FILENAME !~ /\.sources$/ { if (/^[ \t]*deb[ \t]/) print; next }
    FNR == 1 { print "" }
    tolower($0) ~ /^(types|uris|suites|components|signed-by|enabled|trusted|snapshot|check-(valid-until|date)|valid-until-(min|max)|date-max-future):/ || /^[ \t\r]*$/ { print }' "$@" 2>/dev/null
  return 0
}
