#!/bin/sh
# run.sh COMMAND...: run it where lab hosts can be started, in a network namespace of its own: nothing leaves the
# machine, and another docker's firewall does not reach the bridge. Mounts are private too, and go with the command.
#
#   tests/lab/run.sh python -m pytest tests/lab tests/e2e
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cd "$repository"
[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] || { echo "LAB DID NOT RUN: run.sh must run as root" >&2; exit 1; }
PATH=$repository/.venv/bin:$PATH

# Needs the network, so now or never; tests that install gpunode on a host say so when it is missing.
python3 -m tests.lab.site >/dev/null || echo "lab: going on without dependencies for local runs of gpunode" >&2

# shellcheck disable=SC2016  # expands in there
exec unshare --net --mount sh -eu -c '
  ip link set lo up
  resolver=$(mktemp)
  echo "nameserver 10.77.0.1" >"$resolver"   # names mean the same on this side of the bridge
  mount --bind "$resolver" /etc/resolv.conf
  rm -f "$resolver"
  exec "$@"' run.sh "$@"
