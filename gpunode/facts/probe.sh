# shellcheck shell=sh disable=SC2010,SC2012
# (ls: the paths are device nodes and lock files, whose names are known, and of descriptors only numbers are taken.)
# gpunode's probe: what is on this host, read-only, one round trip (facts/wire.py reads the answer).
# POSIX sh; runs unchanged under dash, bash and busybox ash. Sent on stdin to `sh -s`, so nothing stays on the host.
# collect.py puts runtimes/effective.sh (gpunode_cri_status, gpunode_docker_info) and facts/trust.sh (who may be believed)
# before it and the call after it.
#
# Rules, each paid for by someone:
# - Tools that can hang get a file for output and a limit. On the limit: TERM once, never KILL (a killed NVML client
#   has frozen GPUs: dcgm-exporter#84), and the child is left behind. It never holds the SSH pipe.
# - nvidia-smi comes last, after all else is on the wire, and only while the module is loaded: it would load it.
# - docker.socket is never touched while dockerd is down: that would start it.
# - Under GPUNODE_ROOT (tests) only tools inside that root are asked.
# - Nothing is run, opened with root's rights or believed before facts/trust.sh has agreed.

UNITS='nvidia-cdi-refresh.path nvidia-cdi-refresh.service
nvidia-persistenced.service nvidia-fabricmanager.service nvidia-imex.service docker.service docker.socket
containerd.service crio.service kubelet.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service
k0sworker.service k0scontroller.service snap.microk8s.daemon-containerd.service
snap.docker.dockerd.service dnf-automatic-install.timer dnf-automatic.timer apt-daily-upgrade.timer gpunode-mig.service gpunode-*.service'
TOOLS='apt-get dpkg-query dnf yum zypper tdnf pacman rpm update-initramfs dracut mkinitcpio systemctl docker dockerd containerd ctr
crictl crio podman snap python3 curl nvidia-smi nvidia-modprobe mokutil grubby'
FILE_LIMIT=131072
IMPORTS_LIMIT=100 # files, and levels of files that name files
NAMED_LIMIT=20    # processes that were ignored
USERS_LIMIT=16    # engines of users

# ---- plumbing

find_tool() { # NAME -> TOOL, its path; busybox ash's own applets do not count, as `command -v` would have it
  TOOL=
  for bin in $BINS; do
    [ -f "$bin/$1" ] && [ -x "$bin/$1" ] && trusted "${bin#"$R"}/$1" && TOOL=$bin/$1 && return 0
  done
  return 1
}

gpunode_tool() { # what effective.sh runs
  case $1 in
    /*) program "$1" && TOOL=$R$1 ;;
    *) find_tool "$1" ;;
  esac
}

job() { # NAME LIMIT_S COMMAND...: start it in the background
  name=$1; printf '%s' "$2" >"$T/$name.limit"; shift 2
  case $1 in
    do_* | /* | gpunode_*) ;;
    *) if find_tool "$1"; then shift; set -- "$TOOL" "$@"; else echo 127 >"$T/$name.rc"; return 0; fi ;;
  esac
  (
    case $1 in gpunode_*) ulimit -f 16384 ;; esac # at most 8 or 16 MiB of what a socket says: shells count in other blocks
    "$@" >"$T/$name.out" 2>"$T/$name.err" </dev/null 3<&- 4<&- &
    child=$!
    echo "$child" >"$T/$name.pid"
    wait "$child"
    echo $? >"$T/$name.rc"
  ) >/dev/null 2>&1 </dev/null &
}

refuse() { # NAME WHY: it was not asked
  printf '%s\n' "$2" >"$T/$1.why"
}

ask() { # NAME LIMIT_S SOCKET COMMAND...: a job that speaks to a daemon of this host
  ask_name=$1 ask_limit=$2 ask_socket=$3; shift 3
  if own_socket "$ask_socket"; then job "$ask_name" "$ask_limit" "$@"; else refuse "$ask_name" "$WHY_NOT"; fi
  printf '%s\n' "$ask_name" >>"$T/slow"
}

clock() { # -> NOW, whole seconds since boot
  NOW=$TICKS
  if read -r NOW _ 2>/dev/null </proc/uptime; then NOW=${NOW%%.*}; else TICKS=$((TICKS + 1)); fi
}

finish() { # NAME -> RC; waits until the job ends or its limit is over
  RC=
  clock; begun=$NOW
  read -r limit <"$T/$1.limit" || limit=5
  while [ ! -s "$T/$1.rc" ]; do
    clock
    if [ $((NOW - begun)) -gt "$limit" ]; then
      pid=
      read -r pid 2>/dev/null <"$T/$1.pid"
      [ -n "$pid" ] && kill -TERM "$pid" 2>/dev/null
      RC=124
      return 0
    fi
    $NAP
  done
  read -r RC <"$T/$1.rc"
}

payload() { sed 's/^/|/' "$1" 2>/dev/null; echo; } # the echo ends a last line that had no newline; blank lines are skipped

plain() { # TEXT -> PLAIN, for a header: blanks and control characters as \040, as /proc/mounts has them
  PLAIN=$1
  case $1 in
    *[![:graph:]]* | *\\*)
      PLAIN=$(printf '%s' "$1" | tr '\n\r' '??' | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g' | tr -d '\000-\037\177') ;;
  esac
}

emit() { # NAME: collect a job and print it as a section
  if [ -s "$T/$1.why" ]; then
    read -r why <"$T/$1.why"
    printf '@ %s unreadable %s\n' "$1" "$why"
    return 0
  fi
  finish "$1"
  if [ "$RC" != 0 ] && [ ! -s "$T/$1.out" ] && [ -s "$T/$1.err" ]; then
    sed 20q "$T/$1.err" >"$T/$1.msg"
    printf '@ %s rc=%s\n' "$1" "$RC"; payload "$T/$1.msg"
  else
    printf '@ %s rc=%s\n' "$1" "$RC"
    [ -s "$T/$1.out" ] && payload "$T/$1.out"
  fi
  return 0
}

show() { # NAME: print $T/NAME as a section
  printf '@ %s rc=0\n' "$1"
  [ -s "$T/$1" ] && payload "$T/$1"
  return 0
}

show_files() { # PATHS on the host...
  : >"$T/paths"
  for path in "$@"; do
    case $path in /*) ;; *) continue ;; esac
    grep -qxF -- "$path" "$T/shown" 2>/dev/null && continue
    printf '%s\n' "$path" >>"$T/shown"
    plain "$path"
    if ! located "$path"; then
      printf '@ file:%s unreadable %s\n' "$PLAIN" "$WHY_NOT"
    elif [ ! -e "$R$path" ] && [ -h "$R$path" ]; then
      link=$(readlink "$R$path" 2>/dev/null)
      printf '@ file:%s unreadable it is a symbolic link to %s, which is missing\n' "$PLAIN" "${link:-a file}"
    elif [ ! -e "$R$path" ]; then
      printf '@ file:%s absent\n' "$PLAIN"
    elif [ ! -f "$R$path" ]; then
      printf '@ file:%s unreadable not a regular file\n' "$PLAIN"
    elif [ ! -r "$R$path" ]; then
      printf '@ file:%s unreadable permission denied\n' "$PLAIN"
    else
      printf '%s\n' "$path" >>"$T/paths"
    fi
  done
  while read -r path <&3; do
    show_file "$path"
  done 3<"$T/paths"
}

show_file() { # PATH of a readable file
  link=
  if [ -h "$R$1" ]; then
    link=$(readlink -f "$R$1" 2>/dev/null || readlink "$R$1")
    link=${link#"$R"}
  fi
  put_file "$1" "$R$1" "$(stat -Lc %a "$R$1" 2>/dev/null)" "$link"
}

put_file() { # PATH CONTENT_FILE MODE LINK: the section
  plain "$4"; link=${PLAIN:+ symlink=$PLAIN}
  plain "$1"
  size=$(wc -c <"$2") && size=$((size + 0))
  if [ "$size" -gt "$FILE_LIMIT" ]; then
    printf '@ file:%s unreadable over %s bytes\n' "$PLAIN" "$FILE_LIMIT"
    return 0
  fi
  sum=$(sha256sum <"$2" 2>/dev/null) && sum=" sha256=${sum%% *}" || sum=
  printf '@ file:%s bytes=%s%s%s%s\n' "$PLAIN" "$size" "${3:+ mode=$3}" "$sum" "$link"
  [ "$size" -gt 0 ] && payload "$2"
  return 0
}

user_file() { # NAME of a do_user_file job -> $T/NAME.file, its first line in LOOK, its second in LINK
  finish "$1"
  LOOK='' LINK=''
  { read -r LOOK && read -r LINK; } <"$T/$1.out"
  case $LOOK in
    'found '[0-7][0-7][0-7] | 'found '[0-7][0-7][0-7][0-7]) tail -n +3 "$T/$1.out" >"$T/$1.file" ;;
    absent | 'unreadable permission denied' | 'unreadable not a regular file') : >"$T/$1.file" ;;
    'unreadable it is a symbolic link to a file that is missing' | "unreadable $NO_WAY") : >"$T/$1.file" ;;
    *) : >"$T/$1.file"
      LOOK='unreadable it could not be read with the rights of its user' ;;
  esac
}

show_user_file() { # NAME PATH
  grep -qxF -- "$2" "$T/shown" 2>/dev/null && return 0
  printf '%s\n' "$2" >>"$T/shown"
  user_file "$1"
  plain "$2"
  case $LOOK in
    found*) put_file "$2" "$T/$1.file" "${LOOK#found }" "${LINK#"$R"}" ;;
    *) printf '@ file:%s %s\n' "$PLAIN" "$LOOK" ;;
  esac
}

word() { # FILE -> WORD: its first line, "-" when there is none
  WORD=
  { read -r WORD <"$1"; } 2>/dev/null
  WORD=${WORD:--}
}

# ---- who and where

chrooted() { # our root is not that of process 1: an image that is being made, or a container that sees its host's processes
  ours=$(stat -Lc %d:%i "$R/." 2>/dev/null)
  theirs=$(stat -Lc %d:%i "$R/proc/1/root/." 2>/dev/null) # root only; unknown is no
  [ -n "$theirs" ] && [ "$ours" != "$theirs" ]
}

identity() {
  echo "uid=$ME"
  word "$R/proc/sys/kernel/osrelease"; echo "kernel=$WORD"
  if find_tool uname; then echo "machine=$("$TOOL" -m)"; else echo "machine=$(uname -m)"; fi
  word "$R/proc/sys/kernel/hostname"; echo "hostname=$WORD"
  word "$R/proc/sys/kernel/random/boot_id"; echo "boot_id=$WORD"
  if chrooted; then echo init=chroot # whatever /run says: systemctl answers "Running in chroot, ignoring request"
  elif [ -d "$R/run/systemd/system" ]; then echo init=systemd
  elif [ -d "$R/run/openrc" ]; then echo init=openrc
  else
    word "$R/proc/1/comm"
    if [ "$WORD" = init ] && [ -d "$R/etc/init.d" ]; then echo init=sysv; else echo init=none; fi
  fi
  for path in "$R"/etc/init.d/*; do
    case ${path##*/} in docker | containerd | crio | k3s | k3s-agent | rke2-* | k0s*) [ -x "$path" ] && set -- "$@" "${path##*/}" ;; esac
  done
  echo "init_scripts=$*"
  if [ -e "$R/.dockerenv" ] || [ -e "$R/run/.containerenv" ] || [ -e "$R/run/systemd/container" ]; then echo container=1; fi
  if [ -n "$(sed -n '/^flags/{/ hypervisor/p;q;}' "$R/proc/cpuinfo" 2>/dev/null)" ]; then
    word "$R/sys/class/dmi/id/sys_vendor"; echo "hypervisor=$WORD"
  fi
  for path in etc/os-release usr/lib/os-release; do
    [ -r "$R/$path" ] && cat "$R/$path" >"$T/os" && break
  done
}

# ---- PCI: sysfs, since minimal images have no lspci

pci() {
  for dev in "$R"/sys/bus/pci/devices/*; do
    word "$dev/vendor"; vendor=$WORD
    word "$dev/class"; class=$WORD
    case $vendor:$class in 0x10de:* | 0x15b3:* | *:0x0207*) ;; *) continue ;; esac
    printf '%s|%s|%s' "${dev##*/}" "$vendor" "$class"
    for attr in device subsystem_vendor subsystem_device current_link_width max_link_width \
      current_link_speed max_link_speed numa_node power/runtime_status; do
      word "$dev/$attr"
      printf '|%s' "$WORD"
    done
    driver=-
    [ -h "$dev/driver" ] && driver=$(readlink "$dev/driver") && driver=${driver##*/}
    head=$(od -An -tx1 -N4 "$dev/config" 2>/dev/null | tr -d ' \n')
    { read -r _ && read -r bar1; } 2>/dev/null <"$dev/resource" || bar1=
    printf '|%s|%s|%s\n' "${driver:--}" "${head:--}" "${bar1:--}"
  done
}

# ---- the driver

modules() {
  for path in "$R"/sys/module/*/initstate; do
    [ -e "$path" ] || continue
    path=${path%/initstate}
    echo "${path##*/}"
  done
}

driver_modules() { # NAME VERSION INITSTATE REFCNT
  for path in "$R"/sys/module/nvidia*; do
    [ -d "$path" ] || continue
    word "$path/version"; version=$WORD
    word "$path/initstate"; state=$WORD
    word "$path/refcnt"
    echo "${path##*/} $version $state $WORD"
  done
}

driver_marks() {
  for path in "$R"/sys/class/infiniband/*/device/vpd; do # NVLink 5 switches are managed through network functions
    [ -r "$path" ] && grep -aq SW_MNG "$path" && path=$(readlink -f "${path%/vpd}") && echo "sw_mng=${path##*/}"
  done
  [ -e "$R/usr/bin/nvidia-uninstall" ] && echo runfile=/usr/bin/nvidia-uninstall
  [ -d "$R/run/nvidia/driver" ] && trusted /run/nvidia/driver && echo container=/run/nvidia/driver
  for path in etc/dgx-release opt/azurehpc opt/deeplearning opt/aws/dlami etc/eks/nvidia-open-supported-devices.txt; do
    [ -e "$R/$path" ] && trusted "/$path" && echo "image=/$path" && break # catalog/images.yaml has their names
  done
  for path in "$R"/proc/driver/nvidia/gpus/*; do
    [ -d "$path" ] && echo "gpu=${path##*/}"
  done
  return 0
}

do_modinfo() {
  find_tool modinfo || return 127
  for module in nvidia nvidia-current nvidia-current-open; do
    "$TOOL" "$module" >"$T/modinfo.one" 2>&1 || continue
    sed -n '/^\(filename\|version\|license\|signer\):/p' "$T/modinfo.one" 2>/dev/null
    return 0
  done
  cat "$T/modinfo.one"
  return 1
}

do_ldconfig() { # SONAME REAL_PATH in loader order
  find_tool ldconfig || return 127
  "$TOOL" -p | sed -n 's/^[[:space:]]*\(libcuda\.so\.1\|libnvidia-ml\.so\.1\) .*=> \(.*\)$/\1 \2/p' |
    while read -r soname path; do
      echo "$soname $(readlink -f "$R$path" 2>/dev/null || echo "$path")"
    done
}

do_busy() { # PID COMMAND of processes that hold /dev/nvidia*
  # The fd folders' listings say "PATH -> /dev/nvidia0"; a path line "/proc/PID/fd:" comes before its entries.
  ls -l "$R"/proc/[0-9]*/fd 2>/dev/null | sed -n -e '/^\/.*\/fd:$/{s/\/fd:$//;s/.*\///;h;}' -e '/-> \/dev\/nvidia/{g;p;}' |
    sort -un | while read -r pid; do
    # The name of an open file may hold line breaks and look like all of that: by itself a process speaks for no other.
    case $pid in *[!0-9]* | '') continue ;; esac
    ls -l "$R/proc/$pid/fd" 2>/dev/null | grep -q -e '-> /dev/nvidia' || continue
    word "$R/proc/$pid/comm"
    echo "$pid $WORD"
  done
}

do_kernel_log() {
  { { find_tool dmesg && "$TOOL" 2>"$T/dmesg.err"; } ||
    { find_tool journalctl && "$TOOL" -k -b -o short-monotonic --no-pager -q; } || echo "@failed"; } >"$T/dmesg"
  if grep -qx '@failed' "$T/dmesg"; then
    [ -s "$T/dmesg.err" ] || return 127
    cat "$T/dmesg.err" >&2
    return 1
  fi
  grep -aE 'NVRM|nvidia|nouveau|nova_core' "$T/dmesg" | tail -n 200
  return 0
}

# ---- the kernel

kernel_trees() { # RELEASE|BOOTABLE|HEADERS
  for tree in "$R"/lib/modules/*; do
    [ -d "$tree" ] || continue
    release=${tree##*/}
    bootable=0 headers=0
    if [ -e "$R/boot/vmlinuz-$release" ] || [ -e "$tree/vmlinuz" ]; then bootable=1; fi
    build=$tree/build
    if [ -n "$R" ] && [ -h "$build" ]; then # an absolute link inside a fake root
      build=$(readlink "$build")
      case $build in /*) build=$R$build ;; *) build=$tree/$build ;; esac
    fi
    [ -f "$build/Makefile" ] && headers=1
    echo "$release|$bootable|$headers"
  done
}

do_nvidia_ko() {
  [ -d "$R/lib/modules" ] || return 0
  find "$R/lib/modules/" \( -name 'nvidia.ko*' -o -name 'nvidia-current.ko*' -o -name 'nvidia-current-open.ko*' \
    -o -name 'nvidia-tesla*.ko*' \) 2>/dev/null | sed "s|^$R||"
}

next_boot() {
  for path in vmlinuz boot/vmlinuz; do
    [ -h "$R/$path" ] && echo "vmlinuz=$(readlink "$R/$path")" && break
  done
  for path in boot/grub2/grubenv boot/grub/grubenv; do
    [ -r "$R/$path" ] && grep -a '^saved_entry=' "$R/$path" && break
  done
  [ -r "$R/etc/default/grub" ] && grep '^GRUB_DEFAULT=' "$R/etc/default/grub"
  return 0
}

blacklist() { # PATH:LINE
  for path in "$R"/etc/modprobe.d/*.conf "$R"/run/modprobe.d/*.conf "$R"/usr/lib/modprobe.d/*.conf "$R"/lib/modprobe.d/*.conf; do
    [ -r "$path" ] || continue
    set -- "$@" "$path"
  done
  [ $# -gt 0 ] && grep -HE '^[[:space:]]*(blacklist|install|options)[[:space:]]+(nouveau|nova|nvidia)' "$@" | sed "s|^$R||"
  return 0
}

mok_enrolled() { # of the certificate that DKMS signs with: Ubuntu's place, then DKMS's own
  find_tool mokutil || return 0
  for certificate in "$R/var/lib/shim-signed/mok/MOK.der" "$R/var/lib/dkms/mok.pub"; do
    [ -r "$certificate" ] || continue
    case $("$TOOL" --test-key "$certificate" 2>/dev/null) in # mokutil(1); its exit codes differ between versions
      *'already enrolled'*) echo mok_enrolled=1 ;;
      *'enrollment request'*) echo mok_pending=1 ;;
      *'not enrolled'*) echo mok_enrolled=0 ;;
    esac
    return 0
  done
  return 0
}

security() {
  if [ -d "$R/sys/firmware/efi" ]; then echo uefi=1; else echo uefi=0; fi
  path=$R/sys/firmware/efi/efivars
  if [ -r "$path/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c" ]; then # four bytes of attributes, then the value
    secure=$(od -An -tu1 -j4 -N1 "$path/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c" | tr -d ' \n')
    echo "secure_boot=$secure"
    [ "$secure" != 1 ] || mok_enrolled
  fi
  [ -e "$path/MokNew-605dab50-e046-4300-abb6-3dd810dd8b23" ] && echo mok_pending=1
  word "$R/sys/kernel/security/lockdown"; [ "$WORD" != - ] && echo "lockdown=$WORD"
  word "$R/sys/fs/selinux/enforce"; echo "selinux=$WORD"
}

# ---- packages

PACKAGES='nvidia|libcuda|cuda|docker|containerd|moby|^runc|^cri-|podman|kube|^dkms|^linux-(image|headers|generic|modules-nvidia)|^kernel|mokutil|shim|dracut|initramfs-tools|unattended-upgrades|dnf-automatic|^gcc|^make|^(gnupg2?|gpg2?|nvlsm|curl|curl-minimal|wget|ca-certificates|epel-release)$|versionlock'

do_dpkg() {
  find_tool dpkg-query || return 127
  # shellcheck disable=SC2016
  "$TOOL" -W -f '${Package}\t${Version}\t${Architecture}\t${db:Status-Abbrev}\n' >"$T/dpkg.all" || return $?
  grep -E "$PACKAGES" "$T/dpkg.all" || :
}

do_rpm() {
  find_tool rpm || return 127
  "$TOOL" -qa --qf '%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\t%{ARCH}\n' >"$T/rpm.all" || return $?
  grep -E "$PACKAGES" "$T/rpm.all" || :
}

do_pacman() { # NAME VERSION
  find_tool pacman || return 127
  "$TOOL" -Q >"$T/pacman.all" || return $?
  grep -E "$PACKAGES" "$T/pacman.all" || :
}

sources() { # paths of repository files and pins that name NVIDIA or gpunode
  for path in "$R"/etc/apt/sources.list "$R"/etc/apt/sources.list.d/* "$R"/etc/apt/preferences "$R"/etc/apt/preferences.d/* \
    "$R"/etc/yum.repos.d/*.repo "$R"/etc/zypp/repos.d/*.repo; do
    [ -f "$path" ] && [ -r "$path" ] && located "${path#"$R"}" && set -- "$@" "$path"
  done
  for path in "$R"/etc/apt/sources.list.d/gpunode* "$R"/etc/apt/preferences.d/gpunode* "$R"/etc/yum.repos.d/gpunode* \
    "$R"/etc/zypp/repos.d/gpunode*; do
    [ -f "$path" ] && echo "$path"
  done
  [ $# -gt 0 ] && grep -liE 'nvidia|cuda' "$@"
  return 0
}

keyrings() {
  for path in "$R"/usr/share/keyrings/* "$R"/etc/apt/keyrings/* "$R"/etc/apt/trusted.gpg.d/* "$R"/etc/pki/rpm-gpg/*; do
    case $path in *nvidia* | *NVIDIA* | *cuda* | *gpunode*) [ -f "$path" ] && [ -r "$path" ] && set -- "$@" "$path" ;; esac
  done
  [ $# -gt 0 ] && sha256sum "$@" 2>/dev/null | sed "s|  $R|  |"
  return 0
}

key_files() { # PATH BASE64 of what $T/sources trusts and of key files with telling names, as far as root alone writes them
  {
    while read -r path; do
      grep -hoiE '(signed-by|gpgkey)[[:space:]]*[=:][^]]*' "$R$path" | sed 's/^[^=:]*[=:]//; s|file://||g' | tr ', \t' '\n\n\n'
    done <"$T/sources"
    for path in "$R"/usr/share/keyrings/* "$R"/etc/apt/keyrings/* "$R"/etc/apt/trusted.gpg.d/* "$R"/etc/pki/rpm-gpg/*; do
      case $path in *nvidia* | *NVIDIA* | *cuda* | *gpunode*) echo "${path#"$R"}" ;; esac
    done
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
  for path in run/zypp.pid var/run/yum.pid; do
    word "$R/$path"
    case $WORD in *[!0-9]* | '') continue ;; esac
    pid=$WORD
    [ -d "$R/proc/$pid" ] || continue
    word "$R/proc/$pid/comm"
    echo "$pid $WORD /$path"
  done
  for path in var/lib/dpkg/lock-frontend var/lib/dpkg/lock var/lib/apt/lists/lock var/lib/rpm/.rpm.lock usr/lib/sysimage/rpm/.rpm.lock \
    var/cache/dnf/metadata_lock.pid; do
    [ -e "$R/$path" ] && set -- "$@" "$R/$path"
  done
  [ $# -gt 0 ] && [ -r "$R/proc/locks" ] || return 0
  ls -i "$@" 2>/dev/null | while read -r inode path; do
    sed -n "s/^[0-9]*: *[A-Z]* *[A-Z]* *WRITE *\([0-9]*\) [^ ]*:$inode .*/\1/p" "$R/proc/locks" | while read -r pid; do
      # Anybody may lock a file of theirs that has the same number on another file system.
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

# ---- running daemons

candidates() { # PID COMM of all that are called like a container daemon; any user may call a process so
  for path in "$R"/proc/[0-9]*; do
    word "$path/comm"
    case $WORD in
      dockerd | containerd | kubelet | crio | k3s-server | k3s-agent | rke2 | k0s | kubelite) ;;
      containerd-shim | containerd-shim*) WORD=shim ;;
      *) continue ;;
    esac
    printf '%s %s\n' "${path##*/}" "$WORD"
  done
}

owners() { # of $T/candidates: PID COMM PPID UID GID 1|0 (its parent is called the same), without those in containers; $T/shims: root's shims
  { echo self; cat "$T/candidates"; } | sed 's/ .*//; s|$|/status|' | xargs grep -sHE '^(PPid|Uid|Gid|NSpid):' >"$T/status"
  # NSpid counts the pid namespaces that a process is in, ours (grep's) too. Any of the four uids: set-uid programs.
  awk -v shims="$T/shims" '
    NR == FNR { comm[$1] = $2; list[++count] = $1; next }
    { split($1, word, /[\/:]/); pid = word[1] }
    word[3] == "PPid" { parent[pid] = $2 }
    word[3] == "Gid" { gid[pid] = $2 }
    word[3] == "NSpid" { depth[pid] = NF }
    word[3] == "Uid" { owner[pid] = 0; for (i = 5; i > 1; i--) if ($i != 0) owner[pid] = $i }
    END {
      ours = ("self" in depth) ? depth["self"] : 2
      for (i = 1; i <= count; i++) {
        pid = list[i]
        if (!(pid in owner) || (pid in depth) && depth[pid] > ours) continue
        if (comm[pid] == "shim") { if (owner[pid] == 0) print pid >shims; continue }
        # the containerd of a dockerd without root is the business of that one
        if (owner[pid] != 0 && comm[parent[pid]] == "dockerd" && owner[parent[pid]] == owner[pid]) continue
        print pid, comm[pid], parent[pid], owner[pid], gid[pid], comm[parent[pid]] == comm[pid]
      }
    }' "$T/candidates" "$T/status"
}

processes() { # -> $T/processes, PID COMM of the host's daemons and of dockers without root; $T/ignored: PID UID COMM WHY
  : >"$T/processes"; : >"$T/ignored"; : >"$T/shims"
  candidates >"$T/candidates"
  [ -s "$T/candidates" ] && cd "$R/proc" || return 0
  owners >"$T/owners"
  set --
  users=0
  while read -r pid comm _ uid _; do
    case $uid:$comm in
      0:*) set -- "$@" "$pid" ;;
      *:dockerd) users=$((users + 1)); [ "$users" -le "$USERS_LIMIT" ] && set -- "$@" "-$pid" ;;
    esac
  done <"$T/owners"
  namespaces "$@"
  cd / || return 0
  chroot='' named=0 users=0
  if chrooted; then chroot=1; fi
  while read -r pid comm ppid uid gid alike <&3; do
    if [ "$uid" != 0 ]; then
      users_daemon && printf '%s %s\n' "$pid" "$comm" >>"$T/processes"
      continue
    fi
    # A chroot sees the daemons of the machine it is made on, and their root is not ours.
    if [ -n "$chroot" ] && { foreign "$pid:root" || ! seen "$pid:root"; }; then continue; fi
    process
    one_off "$comm" "$T/process:$pid" && continue
    passing && continue
    if own_daemon "$pid" "$T/process:$pid" "$exe"; then
      printf '%s %s\n' "$pid" "$comm" >>"$T/processes"
    else
      ignored "$WHY_NOT"
    fi
  done 3<"$T/owners"
}

passing() { # true: one that has ended, or a daemon's child that is about to run something else
  if [ -z "$exe" ]; then ! grep -q '^arg=' "$T/process:$pid"; return $?; fi
  [ "$alike" = 1 ] || return 1
  parent=$(readlink "$R/proc/$ppid/exe" 2>/dev/null)
  [ "${parent%" (deleted)"}" = "$exe" ]
}

ignored() { # WHY
  named=$((named + 1))
  [ "$named" -le "$NAMED_LIMIT" ] && printf '%s %s %s %s\n' "$pid" "$uid" "$comm" "$1" >>"$T/ignored"
}

users_daemon() { # true: a docker without root, with its process:PID
  if [ "$comm" != dockerd ]; then ignored "it belongs to uid $uid"; return 1; fi
  users=$((users + 1))
  if [ "$users" -gt "$USERS_LIMIT" ]; then ignored "it belongs to uid $uid, and $USERS_LIMIT of its kind were looked at"; return 1; fi
  if [ -n "$chroot" ]; then ignored "it belongs to uid $uid, and this is a chroot"; return 1; fi
  if foreign "$pid:pid"; then ignored "it belongs to uid $uid and runs in a container"; return 1; fi
  # rootlesskit gives every one its own, where its user is root
  if seen "$pid:user" && ! foreign "$pid:user"; then
    ignored "it belongs to uid $uid and has no user namespace of its own, as a docker without root has"
    return 1
  fi
  process
}

process() { # of pid, comm, ppid, uid, gid -> $T/process:PID, and exe
  exe=$(readlink "$R/proc/$pid/exe" 2>/dev/null)
  exe=${exe%" (deleted)"}
  case $exe in *"$NL"*) exe= ;; esac
  {
    printf 'comm=%s\nppid=%s\n' "$comm" "$ppid"
    [ "$uid" = 0 ] || process_of_user
    [ -n "$exe" ] && printf 'exe=%s\n' "$exe"
    sed -n 's/^[^:]*:[^:]*:/cgroup=/p' "$R/proc/$pid/cgroup" 2>/dev/null | sort -u
    if [ "$uid" = 0 ]; then head -c 65536 "$R/proc/$pid/cmdline" 2>/dev/null
    else briefly head -c 65536 "$R/proc/$pid/cmdline"; fi | tr '\0' '\n' | sed 's/^/arg=/'
  } >"$T/process:$pid"
}

process_of_user() { # a docker without root: whose, and where that user's files are
  printf 'uid=%s\ngid=%s\n' "$uid" "$gid"
  awk -F: -v uid="$uid" '$3 == uid { print "user=" $1; print "home=" $6; exit }' "$R/etc/passwd" 2>/dev/null
  # Its own word on the folders, and no other of its environment.
  briefly head -c 65536 "$R/proc/$pid/environ" | tr '\0' '\n' |
    sed -n 's/^HOME=/env_&/p; s/^XDG_CONFIG_HOME=/env_&/p; s/^XDG_RUNTIME_DIR=/env_&/p'
  # Its /etc holds links to the names that were there when it started, and no later ones.
  # shellcheck disable=SC2016
  briefly sh -c '[ -d "$1" ] && [ ! -d "$2" ] && [ ! -h "$2" ] && echo sees_toolkit=0' sh \
    "$R/proc/$pid/root/etc" "$R/proc/$pid/root/etc/nvidia-container-runtime"
}

shims() { # containers per containerd namespace: "moby", "k8s.io"
  [ -s "$T/shims" ] || return 0
  set --
  while read -r pid; do set -- "$@" "$R/proc/$pid/cmdline"; done <"$T/shims"
  cat "$@" 2>/dev/null | tr '\0' '\n' | sed -n '/^-namespace$/{n;p;}'
}

option() { # FILE LONG SHORT -> VALUE of an option among the arg= lines of a process
  VALUE=$(sed -n "
    s/^arg=--*$2=//p
    /^arg=--*$2\$/{n;s/^arg=//p;}
    /^arg=-$3\$/{n;s/^arg=//p;}" "$1" 2>/dev/null | sed -n '$p')
}

absolute() { # PID PATH -> VALUE: a relative path is relative to where the process stands
  VALUE=$2
  case $2 in
    /*) ;;
    *) VALUE=$(readlink "$R/proc/$1/cwd" 2>/dev/null)/$2 ;;
  esac
}

exec_start() { # UNIT FILE: ExecStart of a unit as arg= lines (words; good enough for a path)
  sed -n "/^Id=$1\$/,/^\$/p" "$T/services.out" 2>/dev/null | cat - /dev/null >"$T/unit.one"
  sed -n 's/^ExecStart=.*argv\[\]=\([^;]*\) ;.*/\1/p' "$T/unit.one" | tr ' ' '\n' | sed 's/^/arg=/' >"$2"
}

imports() { # FILE on the host: what its top-level `imports` names, globs expanded
  located "$1" && [ -f "$R$1" ] || return 0
  head -c "$FILE_LIMIT" "$R$1" 2>/dev/null | awk '/^[ \t]*\[/ && !on { exit }
    /^[ \t]*imports[ \t]*=/ { on = 1 }
    on { line = $0; sub(/^[ \t]*#.*/, "", line)
      while (match(line, /"[^"]*"|\047[^\047]*\047/)) { print substr(line, RSTART + 1, RLENGTH - 2); line = substr(line, RSTART + RLENGTH) }
      if (line ~ /\]/) exit }' | while read -r pattern; do
    case $pattern in /*) ;; *) pattern=${1%/*}/$pattern ;; esac
    IFS= # a blank in a name parts nothing
    for path in $R$pattern; do
      [ -e "$path" ] && printf '%s\n' "${path#"$R"}"
    done
  done
}

files_of() { # KEY CONFIG -> $T/KEY:files, it and what it imports; false: some of it may not be read with root's rights
  printf '%s\n' "$2" >"$T/$1:files"
  located "$2" || return 1
  imports "$2" | head -n "$IMPORTS_LIMIT" >"$T/level"
  open='' listed=1
  while [ -s "$T/level" ]; do # nested imports; a file already listed ends the walk
    : >"$T/deeper"
    while read -r path <&4; do
      grep -qxF -- "$path" "$T/$1:files" && continue
      listed=$((listed + 1))
      if [ "$listed" -gt "$IMPORTS_LIMIT" ]; then open=1; break; fi
      printf '%s\n' "$path" >>"$T/$1:files"
      if located "$path" && [ -f "$R$path" ]; then imports "$path" | head -n "$IMPORTS_LIMIT" >>"$T/deeper"; else open=1; fi
    done 4<"$T/level"
    mv "$T/deeper" "$T/level"
  done
  [ -z "$open" ]
}

engine_containerd() { # PID CONFIG SOCKET BINARY: its files now, its answers in the background
  key=containerd:$1 whole=
  files_of "$key" "$2" && whole=1
  cat "$T/$key:files" >>"$T/wanted"
  # Where a drop-in would go, and what an import of that folder would bring into force.
  for path in "$R${2%/*}"/conf.d/*.toml; do
    [ -f "$path" ] && echo "${path#"$R"}" >>"$T/wanted"
  done
  # what a distribution writes this config from, at every start
  for path in "$R${2%/*}"/*.tmpl "$R${2%/*}/containerd-template.toml"; do
    if [ -f "$path" ]; then echo "${path#"$R"}" >>"$T/wanted"; fi
  done
  echo "$key:files" >>"$T/late"
  if program "$4"; then
    job "$key:version" 5 "$R$4" --version
    # It reads all that the file imports, with root's rights.
    if [ -n "$whole" ] && [ -f "$R$2" ] && [ -r "$R$2" ]; then
      job "$key:dump" 5 "$R$4" --config "$R$2" config dump
      echo "$key:dump" >>"$T/slow"
    fi
    echo "$key:version" >>"$T/slow"
  fi
  if [ "$1" != 0 ]; then
    ask "$key:cri" 6 "$3" gpunode_cri_status "$R$3"
    ask "$key:plugins" 6 "$3" ctr -a "$R$3" plugins ls -d id==cri type==io.containerd.cri.v1
    printf '%s\n' "$key $3" >>"$T/sockets"
  fi
}

engine_option() { # ARGS_FILE CONFIG -> SOCKET
  option "$1" address a
  SOCKET=$VALUE
  if [ -z "$SOCKET" ] && located "$2" && [ -f "$R$2" ]; then
    SOCKET=$(sed -n '/^\[grpc\]/,/^\[[^g]/s/^[[:space:]]*address[[:space:]]*=[[:space:]]*"\(.*\)".*/\1/p' "$R$2" 2>/dev/null | sed 1q)
  fi
  SOCKET=${SOCKET:-/run/containerd/containerd.sock}
}

container_engines() {
  : >"$T/wanted"; : >"$T/late"; : >"$T/slow"; : >"$T/sockets"; : >"$T/user_files"
  docker_pid='' containerd_pid='' rootless_pids=''
  while read -r pid comm <&3; do
    echo "process:$pid" >>"$T/late"
    [ "$comm" = dockerd ] || continue
    if grep -q '^uid=' "$T/process:$pid"; then rootless_pids="$rootless_pids $pid"; else docker_pid=$pid; fi
  done 3<"$T/processes"
  while read -r pid comm <&3; do
    [ "$comm" = containerd ] || continue
    one=$T/process:$pid
    # dockerd's own containerd is dockerd's business
    for pid_of_docker in $docker_pid $rootless_pids; do
      grep -qx "ppid=$pid_of_docker" "$one" && continue 2
    done
    option "$one" config c
    absolute "$pid" "${VALUE:-/etc/containerd/config.toml}"
    config=$VALUE
    case $config in */docker/containerd/containerd.toml) continue ;; esac
    engine_option "$one" "$config"
    binary=$(sed -n 's/^exe=//p' "$one")
    [ -n "$binary" ] || binary=$(sed -n 's/^arg=//p' "$one" | sed 1q)
    containerd_pid=$pid
    engine_containerd "$pid" "$config" "$SOCKET" "$binary"
  done 3<"$T/processes"
  exec_start containerd.service "$T/unit-containerd"
  if [ -z "$containerd_pid" ]; then
    option "$T/unit-containerd" config c
    config=${VALUE:-/etc/containerd/config.toml}
    engine_option "$T/unit-containerd" "$config"
    binary=$(sed -n 's/^arg=//p' "$T/unit-containerd" | sed 1q)
    if [ -z "$binary" ] && find_tool containerd; then binary=${TOOL#"$R"}; fi
    if [ -n "$binary" ]; then engine_containerd 0 "$config" "$SOCKET" "$binary"; fi
  fi
  engine_docker
  for pid in $rootless_pids; do engine_rootless "$pid"; done
  engine_crio
  for carrier in k3s rke2 k0s; do
    find_tool "$carrier" || continue
    if [ "$carrier" = k0s ]; then job k0s:version 5 "$TOOL" version; else job "$carrier:version" 5 "$TOOL" --version; fi
    echo "$carrier:version" >>"$T/slow"
  done
  if find_tool podman; then
    job podman 8 do_podman "$TOOL"
    echo podman >>"$T/slow"
  fi
}

engine_crio() {
  exec_start crio.service "$T/unit-crio"
  one=$T/unit-crio crio_pid=''
  while read -r pid comm <&3; do
    if [ "$comm" = crio ]; then crio_pid=$pid one=$T/process:$pid; fi
  done 3<"$T/processes"
  binary=$(sed -n 's/^exe=//p' "$one" 2>/dev/null)
  [ -n "$binary" ] || binary=$(sed -n 's/^arg=//p' "$one" 2>/dev/null | sed 1q)
  if [ -z "$binary" ] && find_tool crio; then binary=${TOOL#"$R"}; fi
  [ -n "$binary" ] || return 0
  option "$one" config c; config=${VALUE:-/etc/crio/crio.conf}
  option "$one" config-dir d; folder=${VALUE:-/etc/crio/crio.conf.d}
  option "$one" listen ''; SOCKET=${VALUE:-/var/run/crio/crio.sock}
  printf 'config=%s\nfolder=%s\nsocket=%s\nbinary=%s\n' "$config" "$folder" "$SOCKET" "$binary" >"$T/crio"
  echo crio >>"$T/late"
  for path in "$R$config" "$R$folder"/*; do
    if [ -e "$path" ]; then echo "${path#"$R"}" >>"$T/wanted"; fi
  done
  if program "$binary"; then
    job crio:version 5 "$R$binary" --version
    echo crio:version >>"$T/slow"
  fi
  if [ -n "$crio_pid" ]; then
    ask crio:config 6 "$SOCKET" gpunode_crio_config "$R$SOCKET"
  fi
}

do_podman() { # PODMAN: its version, and its default runtime for root
  "$1" --version || return $?
  # The first podman of root makes the storage; a look must not.
  [ -e "$R/var/lib/containers/storage/db.sql" ] || [ -e "$R/var/lib/containers/storage/libpod" ] || return 0
  "$1" info --format 'default={{.Host.OCIRuntime.Name}}' || return $?
  "$1" --runtime nvidia info --format 'known={{.Host.OCIRuntime.Name}}' 2>/dev/null
  return 0
}

engine_files() { # configuration of other engines that is merged from several files
  for path in "$R"/etc/rancher/k3s/config.yaml "$R"/etc/rancher/k3s/config.yaml.d/* "$R"/etc/rancher/rke2/config.yaml \
    "$R"/etc/rancher/rke2/config.yaml.d/* "$R"/var/lib/rancher/k3s/agent/etc/containerd/*.tmpl \
    "$R"/var/lib/rancher/rke2/agent/etc/containerd/*.tmpl "$R"/etc/k0s/containerd.toml "$R"/etc/k0s/containerd.d/*.toml \
    "$R"/var/snap/microk8s/current/args/containerd-template.toml "$R"/etc/containers/containers.conf \
    "$R"/etc/containers/containers.conf.d/* "$R"/root/.config/containers/containers.conf \
    "$R"/root/.config/containers/containers.conf.d/*; do
    [ -e "$path" ] && echo "${path#"$R"}"
  done
  # The distribution's own one is a manual of 30 KiB with every line commented out.
  path=/usr/share/containers/containers.conf
  [ -f "$R$path" ] && [ -r "$R$path" ] && grep -qE '^[[:space:]]*(runtime[[:space:]]*=|nvidia)' "$R$path" && echo "$path"
  return 0
}

engine_rootless() { # PID: a user's own dockerd
  one=$T/process:$1
  option "$one" config-file ''
  config=$VALUE
  folder=$(sed -n 's/^env_XDG_CONFIG_HOME=//p' "$one")
  home=$(sed -n 's/^env_HOME=//p' "$one")
  [ -n "$home" ] || home=$(sed -n 's/^home=//p' "$one")
  absolute "$1" "${config:-${folder:-${home:-/home/$(sed -n 's/^uid=//p' "$one")}/.config}/docker/daemon.json}"
  config=$VALUE
  option "$one" host H
  folder=$(sed -n 's/^env_XDG_RUNTIME_DIR=//p' "$one")
  SOCKET=${folder:-/run/user/$(sed -n 's/^uid=//p' "$one")}/docker.sock
  case $VALUE in unix://*) SOCKET=${VALUE#unix://} ;; esac
  printf 'config=%s\nsocket=%s\n' "$config" "$SOCKET" >"$T/docker:$1"
  echo "docker:$1" >>"$T/late"
  # Named by a user: read and asked with the rights of that user.
  uid=$(sed -n 's/^uid=//p' "$one") gid=$(sed -n 's/^gid=//p' "$one")
  printf '%s %s\n' "docker:$1:file" "$config" >>"$T/user_files"
  job "docker:$1:file" 6 do_user_file "$uid" "$gid" "$config"
  job "docker:$1:info" 6 do_user_docker "$uid" "$gid" "$R$SOCKET"
  echo "docker:$1:info" >>"$T/slow"
}

engine_docker() {
  exec_start docker.service "$T/unit-docker"
  one=$T/unit-docker
  if [ -n "$docker_pid" ]; then one=$T/process:$docker_pid; fi
  option "$one" config-file ''
  absolute "${docker_pid:-0}" "${VALUE:-/etc/docker/daemon.json}"
  config=$VALUE
  option "$one" host H
  case $VALUE in unix://*) SOCKET=${VALUE#unix://} ;; *) SOCKET=/var/run/docker.sock ;; esac
  binary=$(sed -n 's/^exe=//p' "$one")
  [ -n "$binary" ] || binary=$(sed -n 's/^arg=//p' "$one" | sed 1q)
  if [ -z "$binary" ] && find_tool dockerd; then binary=${TOOL#"$R"}; fi
  printf 'config=%s\nsocket=%s\nbinary=%s\n' "$config" "$SOCKET" "$binary" >"$T/docker"
  echo docker >>"$T/late"
  printf '%s\n' "$config" >>"$T/wanted"
  if [ -n "$docker_pid" ]; then
    ask docker:info 6 "$SOCKET" gpunode_docker_info "$R$SOCKET"
  elif program "$binary"; then
    job docker:version 5 "$R$binary" --version
    echo docker:version >>"$T/slow"
  fi
}

handler_paths() { # PATH 1|0: the executables that engines' files name for nvidia, and whether they can be run
  {
    while read -r path; do
      [ -f "$R$path" ] && [ -r "$R$path" ] && located "$path" && head -c "$FILE_LIMIT" "$R$path"
    done <"$T/wanted"
    while read -r name _; do user_file "$name"; cat "$T/$name.file"; done <"$T/user_files"
  } | sed 's|\\/|/|g' | grep -aoE "[\"'](/[^\"']*)?/nvidia-container-runtime[^\"'/]*[\"']" | sort -u | sed "s/^.//; s/.$//" | while read -r path; do
    if [ -f "$R$path" ] && [ -x "$R$path" ]; then echo "$path 1"; else echo "$path 0"; fi
  done
}

kubernetes() {
  for path in etc/rancher/k3s etc/rancher/rke2 var/snap/microk8s/current etc/k0s etc/kubernetes/kubelet.conf etc/kubernetes/manifests; do
    [ -e "$R/$path" ] && trusted "/$path" && echo "mark=/$path"
  done
  config=/var/lib/kubelet/config.yaml
  while read -r pid comm; do
    [ "$comm" = kubelet ] || continue
    path=$T/process:$pid
    echo running=1
    option "$path" config ''
    config=${VALUE:-$config}
    option "$path" cgroup-driver ''
    [ -n "$VALUE" ] && echo "flag=$VALUE"
  done <"$T/processes"
  if find_tool kubelet; then echo "binary=$TOOL"; fi
  echo "config=$config"
  if [ -e "$R$config" ]; then
    if located "$config" && [ -f "$R$config" ] && [ -r "$R$config" ]; then sed -n 's/^cgroupDriver:[[:space:]]*/cgroupDriver=/p' "$R$config"; else echo "unreadable=$config"; fi
  fi
  return 0
}

toolkit() {
  for name in nvidia-container-runtime nvidia-container-runtime-hook nvidia-container-toolkit nvidia-ctk; do
    find_tool "$name" || continue
    echo "$name=${TOOL#"$R"}"
  done
  # Found but not executable counts as broken, and `command -v` would not name it.
  for path in usr/bin/nvidia-container-runtime usr/local/bin/nvidia-container-runtime; do
    if [ -e "$R/$path" ] && [ ! -x "$R/$path" ]; then echo "not-executable=/$path"; fi
  done
}

tools() {
  for name in $TOOLS; do
    find_tool "$name" || continue
    echo "${TOOL#"$R"}"
    # dnf is dnf-3 or dnf5, and yum may be either
    case $name in dnf | yum) [ ! -h "$TOOL" ] || { link=$(readlink -f "$TOOL") && echo "${link#"$R"}"; } ;; esac
  done
  [ -e "$R/snap/bin/docker" ] && echo /snap/bin/docker
  return 0
}

devices() {
  for path in "$R"/dev/nvidia* "$R"/dev/nvidia-caps/*; do
    [ -e "$path" ] && set -- "$@" "$path"
  done
  [ $# -gt 0 ] && ls -lnd "$@" 2>/dev/null | sed "s| $R/| /|"
  return 0
}

dev_char() {
  [ -d "$R/dev/char" ] && ls -l "$R/dev/char" 2>/dev/null | sed -n 's/.* \([0-9]*:[0-9]*\) -> .*nvidia.*/\1/p'
  return 0
}

# ---- the round trip

look_up_tools() { # BINS and the tools in them, with one stat; files and folders that are no links
  set -- "$R/"
  for bin in $BINS; do
    path=${bin#"$R"}
    while [ -n "$path" ]; do
      case " $* " in *" $R$path "*) break ;; esac
      [ -d "$R$path" ] && [ ! -h "$R$path" ] && set -- "$@" "$R$path"
      path=${path%/*}
    done
    [ -h "$bin" ] && continue
    for name in $TOOLS systemctl dkms modinfo kmod ldconfig lspci nvidia-ctk uname dmesg journalctl; do
      [ -f "$bin/$name" ] && [ ! -h "$bin/$name" ] && set -- "$@" "$bin/$name"
    done
  done
  for path in /etc /etc/docker /etc/containerd /etc/containerd/conf.d /run /run/containerd /var /var/lib; do
    [ -d "$R$path" ] && [ ! -h "$R$path" ] && set -- "$@" "$R$path"
  done
  look_up "$@"
}

search() { # GIVEN, the PATH that came -> PATH and BINS: what is trusted of it; the system's folders come first in PATH
  BINS=
  old=$IFS; IFS=:; set -f
  for bin in $1:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin; do
    case $bin in *[!A-Za-z0-9._/+~@-]* | [!/]* | '') continue ;; esac
    case " $BINS" in *" $bin "*) ;; *) BINS="$BINS$bin " ;; esac
  done
  set +f; IFS=$old
  look_up_tools
  for bin in $BINS; do
    case :$PATH: in *":$bin:"*) ;; *) trusted "$bin" && PATH=$PATH:$bin ;; esac
  done
}

work_folder() { # -> T, which goes away in every ending
  T=
  for path in /run /dev/shm /tmp /var/tmp; do
    if mkdir "$path/.gpunode-probe.$$" 2>/dev/null; then T=$path/.gpunode-probe.$$; break; fi
  done
  [ -n "$T" ] || return 1
  # Again, when a job that was left behind wrote into it meanwhile.
  trap 'rm -rf "$T" 2>/dev/null || rm -rf "$T" 2>/dev/null || rm -rf "$T" 2>/dev/null' 0
  trap 'exit 130' HUP INT QUIT PIPE TERM
  # KILL leaves no time to; only root writes /run, and a pid may be another namespace's.
  for path in /run/.gpunode-probe.*; do
    [ -d "$path" ] && [ ! -d "/proc/${path##*.}" ] && [ -n "$(find "$path" -maxdepth 0 -mmin +10 2>/dev/null)" ] && rm -rf "$path" 2>/dev/null
  done
  return 0
}

gpunode_probe() {
  R=''
  given=${PATH:-} root=${1:-${GPUNODE_ROOT:-}}
  set --
  umask 077
  LC_ALL=C; LANG=C; TZ=UTC; export LC_ALL LANG TZ
  PATH=/usr/sbin:/usr/bin:/sbin:/bin
  if ! command -v stat >/dev/null 2>&1; then PATH=$given; fi # a system that keeps its tools elsewhere
  export PATH
  unset LD_PRELOAD CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES DOCKER_HOST DOCKER_CONTEXT
  TICKS=0
  cd / || return 1
  printf '@gpunode-facts 1\n'
  if ! work_folder; then
    printf '@ probe rc=1\n|no folder to write in: /run, /dev/shm, /tmp and /var/tmp are full or read-only\n@end\n'
    return 0
  fi
  who
  search "$given"
  if [ -n "${root%/}" ]; then
    R=${root%/}
    BINS="$R/usr/local/sbin $R/usr/local/bin $R/usr/sbin $R/usr/bin $R/sbin $R/bin"
    look_up_tools
  fi
  if sleep 0.02 2>/dev/null; then NAP='sleep 0.02'; else NAP='sleep 1'; fi
  : >"$T/shown"; : >"$T/os"
  for path in / /usr; do # below it nothing is trusted, and a host without tools should say why
    if [ -d "$R$path" ] && ! trusted "$path"; then
      printf '@ trust unreadable no program of this host was run: %s\n' "$WHY_NOT"
      break
    fi
  done

  # slow and hanging things first, in the background
  # shellcheck disable=SC2086
  job services 5 systemctl show --no-pager -p Id,LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,ExecStart $UNITS
  job dpkg 10 do_dpkg
  job rpm 15 do_rpm
  job pacman 10 do_pacman
  job dkms 10 dkms status
  job nvidia_ko 10 do_nvidia_ko
  job modinfo 5 do_modinfo
  job ldconfig 5 do_ldconfig
  job lspci 5 lspci -Dnn -d 10de:
  job ctk_version 5 nvidia-ctk --version
  job kernel_log 10 do_kernel_log
  if [ -d "$R/sys/module/nvidia" ]; then job busy 5 do_busy; fi
  if [ -d "$R/proc/driver/nvidia" ]; then
    job driver_version 5 /bin/cat "$R/proc/driver/nvidia/version"
    job driver_params 5 /bin/cat "$R/proc/driver/nvidia/params"
  fi

  for name in identity pci modules driver_modules driver_marks kernel_trees next_boot blacklist security keyrings \
    package_lock auto_upgrade apt_archives toolkit tools devices dev_char; do
    "$name" >"$T/$name" 2>/dev/null
  done
  { cat "$R/proc/cmdline" || :; } >"$T/cmdline" 2>/dev/null
  { cat "$R/proc/version" || :; } >"$T/kernel_version" 2>/dev/null
  { grep nvidia "$R/proc/devices" || :; } >"$T/proc_devices" 2>/dev/null
  finish services
  processes
  shims >"$T/shim_namespaces" 2>/dev/null; mv "$T/shim_namespaces" "$T/shims"
  container_engines
  kubernetes >"$T/kubernetes" 2>/dev/null
  for name in identity os pci modules driver_modules driver_marks cmdline kernel_version kernel_trees next_boot blacklist security keyrings \
    package_lock auto_upgrade apt_archives processes shims toolkit tools devices dev_char proc_devices kubernetes; do
    show "$name"
  done
  while read -r name <&3; do show "$name"; done 3<"$T/late"
  show sockets
  if [ -s "$T/ignored" ]; then show ignored; fi
  handler_paths >"$T/handler_paths" 2>/dev/null
  if [ -s "$T/handler_paths" ]; then show handler_paths; fi
  sources 2>/dev/null | sort -u | sed "s|^$R||" >"$T/sources"
  show sources
  key_files >"$T/keyring_bytes" 2>/dev/null
  show keyring_bytes
  # /var/run is /run on every current distribution; the same file twice would look like two specifications.
  for path in "$R"/etc/cdi/* "$R"/var/run/cdi/*; do
    case $path in *.yaml | *.yml | *.json) [ -e "$path" ] && echo "${path#"$R"}" ;; esac
  done >"$T/cdi"
  show cdi
  while read -r path; do set -- "$@" "$path"; done <"$T/sources"
  while read -r path; do set -- "$@" "$path"; done <"$T/cdi"
  while read -r path; do set -- "$@" "$path"; done <"$T/wanted"
  engine_files >"$T/engine_files"
  while read -r path; do set -- "$@" "$path"; done <"$T/engine_files"
  show_files "$@" /etc/nvidia-container-runtime/config.toml /run/reboot-required /run/reboot-required.pkgs \
    /etc/dnf/plugins/versionlock.list /etc/dnf/versionlock.toml /etc/yum/pluginconf.d/versionlock.list \
    /etc/zypp/locks /etc/tdnf/locks.d/gpunode.conf /etc/pacman.d/gpunode-hold.conf \
    /etc/modprobe.d/gpunode-nouveau.conf /etc/modules-load.d/gpunode-nvidia.conf /etc/modprobe.d/gpunode-coherent.conf \
    /etc/udev/rules.d/71-gpunode-dev-char.rules /etc/gpunode/mig.conf \
    /etc/gpunode/mig.sh /etc/systemd/system/gpunode-mig.service /etc/containerd/config.toml /etc/docker/daemon.json
  while read -r name path <&3; do show_user_file "$name" "$path"; done 3<"$T/user_files"
  if [ -r "$R/var/lib/gpunode/journal.jsonl" ]; then
    tail -n 2000 "$R/var/lib/gpunode/journal.jsonl" >"$T/journal"
    show journal
  elif [ -e "$R/var/lib/gpunode/journal.jsonl" ] || { [ -d "$R/var/lib/gpunode" ] && [ ! -x "$R/var/lib/gpunode" ]; }; then
    printf '@ journal unreadable permission denied\n'
  fi

  for name in services dpkg rpm pacman dkms nvidia_ko modinfo ldconfig lspci ctk_version; do emit "$name"; done
  for name in driver_version driver_params busy; do
    if [ -e "$T/$name.limit" ]; then emit "$name"; fi
  done
  while read -r name <&3; do emit "$name"; done 3<"$T/slow"
  emit kernel_log
  smi
  printf '@end\n'
}

smi() {
  word "$R/sys/module/nvidia/initstate"
  if [ ! -d "$R/sys/module/nvidia" ]; then
    printf '@ smi unreadable the nvidia module is not loaded\n'
  elif [ "$WORD" != live ] && [ "$WORD" != - ]; then
    printf '@ smi unreadable the nvidia module is %s\n' "$WORD"
  elif grep -q '|suspended|' "$T/pci"; then
    printf '@ smi unreadable a GPU is suspended and would be woken\n'
  else
    job smi "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi -q -x
    emit smi
    # Instances by name stand in the list only.
    if grep -q '<current_mig>Enabled' "$T/smi.out" 2>/dev/null; then
      job smi_list "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi -L
      emit smi_list
    fi
  fi
}
