# shellcheck shell=sh disable=SC2154
# (probe/run.sh, probe/wire.sh and probe/host.sh, which are sent with it, set what it reads.)
# Where GPUs and RDMA devices are in the PCI tree of a machine that is no guest, and what the switches above them do with
# what they send each other. The shell follows sysfs's links itself; one process reads the switches, where there are any
# below which several GPUs are.

PLACES_LIMIT=128 # GPUs and RDMA devices; an HGX node has some thirty
SWITCH_PORTS_LIMIT=64
PCI_CONFIG_MARK=gpunode-boundary # one line of od's

place() { # FUNCTION's directory, or a link to it -> place=NUMA_NODE pci0000:15/.../0000:19:00.0
  [ "$places" -lt "$PLACES_LIMIT" ] && cd -P "$1" || return 0
  where=$PWD
  cd /
  case $where in */sys/devices/pci*/*) ;; *) return 0 ;; esac
  places=$((places + 1))
  word "$where/numa_node"
  echo "place=$WORD ${where##*/sys/devices/}"
  switch_ports
}

switch_ports() { # of where -> SWITCH_PORTS: every second bridge above it. The first is the root port, the next a switch
  bridge=${where%/sys/devices/*}/sys/devices rest=${where##*/sys/devices/} depth=-1
  while [ "$rest" != "${rest#*/}" ]; do
    bridge=$bridge/${rest%%/*} rest=${rest#*/}
    if [ "$depth" -ge 2 ] && [ $((depth % 2)) = 0 ] && [ "$ports" -lt "$SWITCH_PORTS_LIMIT" ]; then
      case " $SWITCH_PORTS " in
        *" $bridge "*) ;;
        *) ports=$((ports + 1)); SWITCH_PORTS="$SWITCH_PORTS $bridge" ;;
      esac
    fi
    depth=$((depth + 1))
  done
}

topology() { # where it is
  places=0 ports=0 gpus=0 SWITCH_PORTS=
  if [ "$SETTING" != machine ] || [ -n "$VIRTUAL" ]; then return 0; fi
  while IFS='|' read -r address vendor class _; do
    case $vendor:$class in 0x10de:0x0300* | 0x10de:0x0302*) ;; *) continue ;; esac
    gpus=$((gpus + 1))
    place "$R/sys/bus/pci/devices/$address"
  done <"$T/pci"
  for device in "$R"/sys/class/infiniband/*; do
    if [ -e "$device/device" ]; then place "$device/device"; fi
  done
  if [ "$gpus" -lt 2 ] || [ "$ME" != 0 ]; then SWITCH_PORTS=; fi
  for bridge in $SWITCH_PORTS; do echo "port=${bridge##*/}"; done
}

switch_config() { # the config space of each of them, behind a mark: its extended half is root's alone
  printf '%s' "$PCI_CONFIG_MARK" >"$T/mark"
  set --
  for bridge in $SWITCH_PORTS; do set -- "$@" "$T/mark" "$bridge/config"; done
  od -Ax -tx4 "$@"
}
