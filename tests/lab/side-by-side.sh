#!/bin/sh
# side-by-side.sh PYTHON: every test file of the lab, each in a namespace and a lab of its own, several at a time: hosts mostly
# wait (for a boot, for a unit that comes back). The largest files start first. What a file printed is shown whole when
# it ends; the exit status is not 0 when any of them failed. GPUNODE_LAB_JOBS: how many at a time (processors + 1).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cd "$repository"
python=$1
jobs=${GPUNODE_LAB_JOBS:-$(($(nproc) + 1))}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export logs python
# shellcheck disable=SC2016  # expands in there
find tests/lab -maxdepth 1 -name 'test_*.py' -size +0 -printf '%s %p\n' | sort -rn | cut -d' ' -f2 |
  xargs -P "$jobs" -I FILE sh -c '
    log=$logs/$(basename "$1") status=0
    sh tests/lab/run.sh "$python" -m pytest -q "$1" >"$log" 2>&1 </dev/null || status=$?
    { flock 9; printf "== %s\n" "$1"; cat "$log"; } 9>"$logs/.lock"
    exit "$status"' one FILE
