# shellcheck shell=sh
# Who this host is, and which tools it has.

TOOLS="$MANAGER_TOOLS"' update-initramfs dracut mkinitcpio systemctl docker dockerd containerd ctr
crictl crio podman snap python3 curl nvidia-smi nvidia-modprobe mokutil grubby'

chrooted() { # our root is not that of process 1: an image that is being built, or a container that sees its host's processes
  own=$(stat -Lc %d:%i "$R/." 2>/dev/null)
  init=$(stat -Lc %d:%i "$R/proc/1/root/." 2>/dev/null) # root only; unknown is no
  [ -n "$init" ] && [ "$own" != "$init" ]
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
