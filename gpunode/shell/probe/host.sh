# shellcheck shell=sh
# Who this host is, and which tools it has.

TOOLS="$MANAGER_TOOLS"' update-initramfs dracut mkinitcpio systemctl docker dockerd containerd ctr
crictl crio podman snap python3 curl nvidia-smi nvidia-modprobe mokutil grubby'

# What the kernel always gives the first PID namespace of a machine (PROC_PID_INIT_INO, include/linux/proc_ns.h).
FIRST_PIDS='pid:[4026531836]'

kernel_tells() { # -> $T/.kernel: mounts that matter, numbers, and "hypervisor": one sed for what the shell cannot read, or slowly
  sed -n -e '/^[^ ]* \/ /p' -e '/^[^ ]* \/usr /p' -e '/^[^ ]* \/var /p' -e '/^[^ ]* \/sys\/fs\/cgroup[ /]/p' -e '/^[0-9[:blank:]]*$/p' \
    -e '/^flags/{' -e '/ hypervisor/{' -e 's/.*/hypervisor/' -e p -e '}' -e q -e '}' \
    "$R/proc/mounts" "$R/proc/sys/fs/file-nr" "$R/proc/sys/kernel/pid_max" "$R/proc/sys/kernel/threads-max" \
    "$R/proc/cpuinfo" >"$T/.kernel" 2>/dev/null
}

mounted_on_root() { # PROCESS -> the device, and the directory of it, that are mounted on its /; the last covers those before it
  sed -n -e '/^[^ ]* [^ ]* [^ ]* [^ ]* \/ /h' -e '${' -e x -e 's/^[^ ]* [^ ]* \([^ ]* [^ ]*\) .*/\1/p' -e '}' "$R/proc/$1/mountinfo"
}

chrooted() { # our root is not that of process 1: an image that is being built, or a container that sees its host's processes
  [ -e "$R/proc/sys/kernel/osrelease" ] || return 0 # nobody mounted /proc, as every running system does
  stat -Lc %d:%i "$R/." "$R/proc/1/root/." >"$T/roots" 2>/dev/null
  own='' init=''
  { read -r own && read -r init; } <"$T/roots"
  if [ -z "$init" ]; then # only root may follow it, and in another user namespace not even root; all may read mountinfo
    init=$(mounted_on_root 1)
    own=$(mounted_on_root self)
  fi
  [ -n "$init" ] && [ "$own" != "$init" ]
}

nested() { # our process 1 is not the machine's: a container, or a command of an image's build
  space=$(readlink "$R/proc/self/ns/pid" 2>/dev/null)
  [ -n "$space" ] && [ "$space" != "$FIRST_PIDS" ]
}

booted() { # process 1 is an init, and no command that ends with the build. WSL's is called "init(Debian)"
  word "$R/proc/1/comm"
  case $WORD in systemd | init | 'init('* | openrc-init | runit | dinit | shepherd) ;; *) return 1 ;; esac
}

declared() { # who started it says that it is a container (systemd.io/CONTAINER_INTERFACE; docker's and podman's own marks)
  for path in run/systemd/container .dockerenv run/.containerenv; do
    if [ -e "$R/$path" ]; then return 0; fi
  done
  # other inits write no file of what they were started with
  [ ! -d "$R/run/systemd/system" ] && tr '\0' '\n' <"$R/proc/1/environ" 2>/dev/null | grep -q '^container=.'
}

serves() { # something runs in it for others: it was given GPUs, or has an engine
  [ -e "$R/dev/nvidiactl" ] || [ -n "$(candidates)" ]
}

setting() { # -> SETTING: "image" while one is being built, "container" for one that runs, "machine"
  SETTING=machine
  if chrooted; then SETTING=image
  elif [ -n "$(platform)" ] || ! nested; then :
  elif booted; then
    if declared; then SETTING=container; fi
  elif serves; then SETTING=container
  else SETTING=image; fi
}

image_based() { # an image replaces /usr as a whole: package managers cannot write there
  if [ -e "$R/run/ostree-booted" ]; then echo image_based=ostree; return 0; fi
  # the last mount covers those before it
  mounted=
  while read -r _ path _ options _; do
    case $path in / | /usr) mounted=$options ;; esac
  done <"$T/.kernel"
  case $mounted in ro | ro,*) ;; *) return 0 ;; esac
  if find_tool transactional-update; then echo image_based=transactional-update; else echo image_based=read-only; fi
}

platform() { # a machine that brings its own driver
  if [ -e "$R/dev/dxg" ] && [ -d "$R/usr/lib/wsl/lib" ]; then echo platform=wsl
  elif [ -f "$R/etc/nv_tegra_release" ]; then echo platform=l4t; fi
}

cgroup_hierarchy() { # v2 where /sys/fs/cgroup is one, as the kubelet sees it; hybrid: v1, and v2 below it
  one='' two=''
  while read -r _ path type _; do
    case $path:$type in
      /sys/fs/cgroup:cgroup2) echo cgroup=v2; return 0 ;;
      /sys/fs/cgroup/*:cgroup2) two=1 ;;
      /sys/fs/cgroup/*:cgroup) one=1 ;;
    esac
  done <"$T/.kernel"
  if [ -n "$one$two" ]; then if [ "$one$two" = 11 ]; then echo cgroup=hybrid; else echo cgroup=v1; fi; fi
}

starter() { # what starts daemons
  if [ -d "$R/run/systemd/system" ]; then echo init=systemd
  elif [ -d "$R/run/openrc" ]; then echo init=openrc
  else
    word "$R/proc/1/comm"
    if [ "$WORD" = init ] && [ -d "$R/etc/init.d" ]; then echo init=sysv; else echo init=none; fi
  fi
}

identity() {
  echo "uid=$ME"
  # The kernel below an image is that of the machine that builds it; facts/collect.py names the image's own.
  if [ "$SETTING" = image ]; then WORD=-; else word "$R/proc/sys/kernel/osrelease"; fi
  echo "kernel=$WORD"
  word "$R/proc/sys/kernel/arch" # since Linux 6.1
  if [ "$WORD" = - ]; then if find_tool uname; then WORD=$("$TOOL" -m); else WORD=$(uname -m); fi; fi
  echo "machine=$WORD"
  word "$R/proc/sys/kernel/hostname"; printf 'hostname=%s\n' "$WORD"
  word "$R/proc/sys/kernel/random/boot_id"; echo "boot_id=$WORD"
  # in an image whatever /run says: systemctl answers "Running in chroot, ignoring request"
  case $SETTING in
    image) echo init=chroot ;;
    container)
      starter; image_based; echo platform=container; cgroup_hierarchy
      word "$R/proc/self/uid_map"; echo "uid_map=$WORD" ;;
    *) starter; image_based; platform; cgroup_hierarchy; word "$R/sys/class/dmi/id/product_name"; printf 'product=%s\n' "$WORD" ;;
  esac
  for path in "$R"/etc/init.d/*; do
    case ${path##*/} in docker | containerd | crio | k3s | k3s-agent | rke2-* | k0s*) [ -x "$path" ] && set -- "$@" "${path##*/}" ;; esac
  done
  printf 'init_scripts=%s\n' "$*"
  if [ "$SETTING" = container ] || [ -e "$R/.dockerenv" ] || [ -e "$R/run/.containerenv" ] || [ -e "$R/run/systemd/container" ]; then echo container=1; fi
  VIRTUAL=
  if [ "$SETTING" != image ] && tells hypervisor; then
    # shellcheck disable=SC2034  # pci.sh asks
    VIRTUAL=1
    word "$R/sys/class/dmi/id/sys_vendor"; printf 'hypervisor=%s\n' "$WORD"
  fi
}

tells() { # WORD: of $T/.kernel, alone in its line
  while read -r line; do
    if [ "$line" = "$1" ]; then return 0; fi
  done <"$T/.kernel"
  return 1
}

os_release() { # -> its section
  say '@ os rc=0'
  for path in etc/os-release usr/lib/os-release; do
    if [ -r "$R/$path" ]; then piece "$R/$path"; return; fi
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
