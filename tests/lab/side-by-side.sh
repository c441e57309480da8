#!/bin/sh
# side-by-side.sh PYTHON: every test file of the lab, each in a namespace and a lab of its own, several at a time: hosts mostly
# wait (for a boot, for a unit that comes back). The slow files start first, then the larger ones. What a file printed is
# shown whole when it ends; the exit status is not 0 when any of them failed. GPUNODE_LAB_JOBS: how many at a time
# (processors + 1, up to 4).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cd "$repository"
python=$1
jobs=$(($(nproc) + 1))
[ "$jobs" -le 4 ] || jobs=4 # hosts take memory: a lab has up to four, of a few hundred megabytes
jobs=${GPUNODE_LAB_JOBS:-$jobs}
slow="test_killed test_setup_end_to_end test_resolver_faults test_resolvers test_reboot"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs python
files() {
  for name in $slow; do echo "tests/lab/$name.py"; done
  find tests/lab -maxdepth 1 -name 'test_*.py' -size +0 -printf '%s %p\n' | sort -rn | cut -d' ' -f2
}
# shellcheck disable=SC2016  # expands in there
files | awk '!seen[$0]++' |
  xargs -P "$jobs" -I FILE sh -c '
    log=$logs/$(basename "$1") status=0
    sh tests/lab/run.sh "$python" -m pytest -q "$1" >"$log" 2>&1 </dev/null || status=$?
    { flock 9; printf "== %s\n" "$1"; cat "$log"; } 9>"$logs/.lock"
    exit "$status"' one FILE
