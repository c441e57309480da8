# shellcheck shell=sh
# The machine at large, from /proc and /sys: the shell reads them itself. Of /proc/sys it cannot: dash asks for one byte
# at a time, and numbers there are given whole or not at all.

PORTS_LIMIT=64 # of RDMA devices; an HGX node has ten to twenty
SWAPS_LIMIT=16
POLICIES_LIMIT=64 # of cpufreq; most drivers have one for each CPU
TOOLKITS_LIMIT=4 # of CUDA

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
      printf 'swap=%s\n' "$path"
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

rdma_modules() { # NAME|VERSION|SRCVERSION|TAINT: the kernel marks a module that is built outside it by an O
  for name in mlx5_core mlx5_ib ib_core ib_uverbs; do
    path=$R/sys/module/$name
    [ -r "$path/taint" ] || continue
    word "$path/version"; version=$WORD
    word "$path/srcversion"; source=$WORD
    word "$path/taint"; echo "module=$name|$version|$source|$WORD"
  done
  echo modules=read
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

governors() { # NAME COUNT, for each run of equal ones
  run=0 count=0 last=''
  for path in "$R"/sys/devices/system/cpu/cpufreq/policy*/scaling_governor; do
    [ -r "$path" ] && [ "$count" -lt "$POLICIES_LIMIT" ] || break
    count=$((count + 1))
    word "$path"
    if [ "$WORD" != "$last" ]; then
      [ "$run" = 0 ] || echo "governor=$last $run"
      last=$WORD run=0
    fi
    run=$((run + 1))
  done
  [ "$run" = 0 ] || echo "governor=$last $run"
  echo governors=read
}

huge_pages() {
  word "$R/sys/kernel/mm/transparent_hugepage/enabled"; echo "thp=$WORD"
}

cuda_toolkits() { # DIRECTORY VERSION VERSION_OF_NVCC, of NVIDIA's own packages and installers
  count=0
  for path in "$R"/usr/local/cuda-[0-9]*/version.json; do
    [ -f "$path" ] && [ ! -h "$path" ] && [ "$count" -lt "$TOOLKITS_LIMIT" ] || continue
    count=$((count + 1))
    located "${path#"$R"}" || continue
    lines=0 part='' version=- nvcc=-
    while [ "$lines" -lt 400 ] && read -r key _ number; do
      lines=$((lines + 1)) number=${number%,}
      case $part:$key in
        *:'"version"') case $part in '"cuda"') version=$number ;; '"cuda_nvcc"') nvcc=$number ;; esac ;;
        *:'"name"') ;;
        *) part=$key ;;
      esac
    done <"$path"
    path=${path%/version.json}
    printf 'cuda=%s %s %s\n' "${path#"$R"}" "$version" "$nvcc"
  done
  echo cudas=read
}

# For debugging (CUDA's and DCGM's documentation), or hiding GPUs.
VARIABLES='CUDA_VISIBLE_DEVICES|CUDA_INJECTION(32|64)_PATH|NSIGHT_CUDA_DEBUGGER|CUDA_LAUNCH_BLOCKING|CUDA_PROFILE|'\
'COMPUTE_PROFILE|OPENCL_PROFILE|CUDA_AUTO_BOOST|CUDA_ENABLE_COREDUMP_ON_EXCEPTION|CUDA_DEVICE_WAITS_ON_EXCEPTION'

# As logins, systemd and SUSE have them, apt, and dnf.
PROXIES='(https?|HTTPS?|all|ALL)_(proxy|PROXY)=|Proxy[[:blank:]]+|proxy[[:blank:]]*='

# env=PATH:LINE:NAME, proxy=PATH:LINE:HOST (user and password stay where they are), indirect=PATH:LINE for a unit whose
# variables are in a further file, dns=1 for a name server; never another value
variables() {
  set -- "$R"/etc/environment "$R"/etc/profile "$R"/etc/profile.d/*.sh "$R"/etc/systemd/system.conf \
    "$R"/etc/systemd/system.conf.d/*.conf "$R"/etc/resolv.conf
  set -f # the words are globs below $R, not here
  for path in $PROXY_FILES; do
    set +f
    set -- "$@" "$R"$path
  done
  set +f
  for name in docker containerd crio; do
    set -- "$@" "$R/etc/systemd/system/$name.service" "$R/etc/systemd/system/$name.service.d"/*.conf \
      "$R/run/systemd/system/$name.service.d"/*.conf "$R/usr/lib/systemd/system/$name.service.d"/*.conf
  done
  for path in "$@"; do
    shift
    [ -f "$path" ] || continue
    if [ -r "$path" ]; then set -- "$@" "$path"; else echo "unseen=${path#"$R"}"; fi
  done
  echo envs=read
  if [ -e "$R/etc/resolv.conf" ]; then echo resolv=present
  elif [ -h "$R/etc/resolv.conf" ]; then echo resolv=dead
  else echo resolv=absent; fi
  host='([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?'
  [ $# -eq 0 ] || grep -HnE "^([^#]*[^#A-Za-z0-9_])?(($VARIABLES)=|$PROXIES)|^EnvironmentFile=|^nameserver[[:blank:]]" "$@" |
    sed -nE -e "s|^$R/|/|" -e '/^[^:]*:[0-9]+:[[:blank:]]*\/\//d' \
      -e "s/^([^:]*:[0-9]+):([^#]*[^#A-Za-z0-9_])?($VARIABLES)=.*/env=\1:\3/p" \
      -e "s/^([^:]*:[0-9]+):([^#]*[^#A-Za-z0-9_])?($PROXIES)[[:blank:]]*[\"']?([A-Za-z0-9]+:\/\/)?([^\"'[:space:]]*@)?($host)([\"'\/;,[:space:]][^@]*)?$/proxy=\1:\8/p" \
      -e 's/^(\/[^:]*:[0-9]+):EnvironmentFile=.*/indirect=\1/p' -e 's/^\/etc\/resolv\.conf:[0-9]+:nameserver.*/dns=1/p' -e 128q
}

system() {
  { read -r seconds _ <"$R/proc/uptime"; } 2>/dev/null && echo "uptime=${seconds%%.*}"
  for part in memory swaps threads lock_begun clock_set boot_images rdma rdma_modules iommu memlock governors huge_pages cuda_toolkits variables; do "$part" 2>/dev/null; done
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
