#!/bin/sh
# run.sh COMMAND...: run it where lab hosts can be started, in namespaces of its own. Network: nothing leaves the machine, and
# another docker's firewall does not reach the bridge. Pid: nothing but the lab's own processes can be ended, and they all end
# with the command. Mount: its mounts go with it.
#
#   tests/lab/run.sh .venv/bin/python -m pytest tests/lab
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cd "$repository"
[ $# -gt 0 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] || { echo "LAB DID NOT RUN: run.sh must run as root" >&2; exit 1; }
PATH=$repository/.venv/bin:$PATH

apart() { unshare --net --mount --pid --fork --kill-child --mount-proc "$@"; }
told=$(apart true 2>&1) || {
  echo "LAB DID NOT RUN: it cannot have namespaces of its own here: $told" >&2
  echo "In a chroot, the directory must be a mount point before you enter it: mount --bind DIR DIR" >&2
  exit 1
}
# The lab compares its own with these before it starts anything (tests/lab/containment.py).
GPUNODE_LAB_OUTER=$(readlink /proc/self/ns/mnt /proc/self/ns/pid /proc/self/ns/net | tr '\n' ' ')
export GPUNODE_LAB_OUTER

# Needs the network, so now or never; tests that install gpunode on a host say so when it is missing.
python3 -m tests.lab.site >/dev/null || echo "lab: going on without dependencies for local runs of gpunode" >&2

# The shell stays, as process 1 in there: it reaps what the lab's processes leave, and all of it ends with it.
# shellcheck disable=SC2016  # expands in there
exec unshare --net --mount --pid --fork --kill-child --mount-proc sh -eu -c '
  ip link set lo up
  resolver=$(mktemp)
  echo "nameserver 10.77.0.1" >"$resolver"   # names mean the same on this side of the bridge
  mount --bind "$resolver" /etc/resolv.conf
  rm -f "$resolver"
  status=0
  "$@" || status=$?
  exit "$status"' run.sh "$@"
