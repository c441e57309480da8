# shellcheck shell=sh
# The machine at large, from /proc and /sys: the shell reads them itself. Of /proc/sys it cannot: dash asks for one byte
# at a time, and numbers there are given whole or not at all.

PORTS_LIMIT=64 # of RDMA devices; an HGX node has ten to twenty
SWAPS_LIMIT=16

memory() {
  while read -r key number _; do
    case $key in
      MemTotal:) echo "MemTotal=$number" ;;
      MemAvailable:) echo "MemAvailable=$number"; return 0 ;;
    esac
  done <"$R/proc/meminfo"
}

swaps() { # PATH TYPE SIZE USED PRIORITY below a title
  [ -r "$R/proc/swaps" ] || return 0
  {
    read -r _
    count=0
    while [ "$count" -lt "$SWAPS_LIMIT" ] && read -r path _; do
      echo "swap=$path"
      count=$((count + 1))
    done
  } <"$R/proc/swaps"
  echo swaps=read
}

threads() { # 0.10 0.05 0.01 2/812 12345: 812 of them
  read -r _ _ _ of _ <"$R/proc/loadavg" && echo "threads=${of#*/}"
}

lock_begun() { # field 22 of /proc/PID/stat; the second may have blanks and brackets in it
  { read -r pid _ <"$T/package_lock"; } 2>/dev/null || return 0
  word "$R/proc/$pid/stat"
  set -f
  # shellcheck disable=SC2086
  set -- ${WORD##*) }
  set +f
  [ $# -lt 20 ] || echo "lock=${20}"
}

clock_set() { # systemd-timesyncd(8): it touches the file when it has set the clock
  [ -d "$R/run/systemd/timesync" ] || return 0
  if [ -e "$R/run/systemd/timesync/synchronized" ]; then echo timesync=1; else echo timesync=0; fi
}

boot_images() {
  [ -r "$R/boot" ] && [ -x "$R/boot" ] || return 0
  echo boot=read
  for tree in "$R"/lib/modules/*; do
    release=${tree##*/}
    for path in "initrd.img-$release" "initramfs-$release.img" "initrd-$release"; do
      [ -s "$R/boot/$path" ] && echo "initramfs=$release" && break
    done
  done
}

rdma() { # DEVICE|PORT|PCI ADDRESS|LAYER|STATE|PHYSICAL|RATE|BOARD|DOWNED|INTERFACE|MTU
  count=0
  for path in "$R"/sys/class/infiniband/*/ports/[0-9]*; do
    [ -d "$path" ] && [ "$count" -lt "$PORTS_LIMIT" ] || return 0
    count=$((count + 1))
    device=${path%/ports/*}
    address=-
    if cd -P "$device/device"; then address=${PWD##*/}; fi # a link to the function, which the shell can follow itself
    cd /
    printf 'rdma=%s|%s|%s' "${device##*/}" "${path##*/}" "$address"
    for file in "$path/link_layer" "$path/state" "$path/phys_state" "$path/rate" "$device/board_id" \
      "$path/counters/link_downed" "$path/gid_attrs/ndevs/0"; do
      word "$file"
      printf '|%s' "$WORD"
    done
    case $WORD in */* | -) WORD=- ;; *) word "$R/sys/class/net/$WORD/mtu" ;; esac
    printf '|%s\n' "$WORD"
  done
}

iommu() { # of the GPUs that the driver has
  for path in "$R"/proc/driver/nvidia/gpus/*; do
    word "$R/sys/bus/pci/devices/${path##*/}/iommu_group/type"
    [ "$WORD" = - ] || echo "iommu=${path##*/} $WORD"
  done
}

memlock() { # of the engines: what a container may lock
  while read -r pid comm <&4; do
    case $comm in dockerd | containerd | crio) ;; *) continue ;; esac
    while read -r _ what which soft _; do
      [ "$what $which" = 'locked memory' ] && echo "memlock=$comm $soft"
    done <"$R/proc/$pid/limits"
  done 4<"$T/processes"
}

# For debugging (CUDA's and DCGM's documentation), or hiding GPUs.
VARIABLES='CUDA_VISIBLE_DEVICES|CUDA_INJECTION(32|64)_PATH|NSIGHT_CUDA_DEBUGGER|CUDA_LAUNCH_BLOCKING|CUDA_PROFILE|'\
'COMPUTE_PROFILE|OPENCL_PROFILE|CUDA_AUTO_BOOST|CUDA_ENABLE_COREDUMP_ON_EXCEPTION|CUDA_DEVICE_WAITS_ON_EXCEPTION'

variables() { # env=PATH:LINE:NAME, never a value
  set --
  for path in "$R"/etc/environment "$R"/etc/profile "$R"/etc/profile.d/*.sh "$R"/etc/systemd/system.conf \
    "$R"/etc/systemd/system.conf.d/*.conf; do
    [ -f "$path" ] && [ -r "$path" ] && set -- "$@" "$path"
  done
  echo envs=read
  [ $# -eq 0 ] || grep -HnoE "^([^#]*[^#A-Za-z0-9_])?($VARIABLES)=" "$@" |
    sed -n -e "s|^$R/|/|" -e 's/^\([^:]*:[0-9]*\):\(.*[^A-Z0-9_]\)\{0,1\}\([A-Z0-9_]*\)=$/env=\1:\3/p' -e 64q
}

system() {
  { read -r seconds _ <"$R/proc/uptime"; } 2>/dev/null && echo "uptime=${seconds%%.*}"
  for part in memory swaps threads lock_begun clock_set boot_images rdma iommu memlock variables; do "$part" 2>/dev/null; done
  return 0
}

do_room() { # mount=PATH ro|rw; files=OPEN UNUSED MOST; limit=THREADS; PATH BLOCK FREE BLOCKS INODES_FREE INODES
  while read -r one two three four _; do
    case $two:$four in
      /:r[ow] | /:r[ow],* | /var:r[ow] | /var:r[ow],*) echo "mount=$two ${four%%,*}" ;;
      [0-9]*) echo "files=$one $two $three" ;;
      :) case $one in *[!0-9]* | '') ;; *) echo "limit=$one" ;; esac ;;
    esac
  done <"$T/.kernel"
  for path in / /boot /var /var/lib/docker /var/lib/containerd /var/lib/containers /var/lib/kubelet; do
    [ -d "$R$path" ] && set -- "$@" "$R$path"
  done
  if find_tool stat; then unrooted "$TOOL" -f -c '%n %S %a %b %d %c' "$@"; fi
}
