#!/bin/sh
# side-by-side.sh PYTHON: every test file of the lab, each in a namespace and a lab of its own, several at a time: hosts mostly
# wait (for a boot, for a unit that comes back). The slow files start first, then the larger ones. A line says when a file
# starts and when it ends, how each test of it ended as soon as it did, and at least every minute what is under way; what else
# a file printed is shown when it ends. The exit status is not 0 when any of them failed. GPUNODE_LAB_JOBS: how many at a time (processors + 1, up to 4).
# For the test of this: GPUNODE_LAB_FOLDER (of the test files), GPUNODE_LAB_RUN (for run.sh), GPUNODE_LAB_BEAT_S.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../.." && pwd)
cd "$repository"
python=$1
directory=${GPUNODE_LAB_FOLDER:-tests/lab}
run=${GPUNODE_LAB_RUN:-tests/lab/run.sh}
beat_s=${GPUNODE_LAB_BEAT_S:-55}
tick_s=5
[ "$beat_s" -ge "$tick_s" ] || tick_s=1
jobs=$(($(nproc) + 1))
[ "$jobs" -le 4 ] || jobs=4 # hosts take memory: a lab has up to four, and one eight, of a few hundred megabytes
jobs=${GPUNODE_LAB_JOBS:-$jobs}
slow="test_killed test_fleet_rollout test_fleet_cut_off test_chaos test_setup_end_to_end test_typed_containerd test_resolver_faults test_resolvers test_reboot test_kubernetes_kubelet test_kubernetes_node test_kubernetes_pod"
logs=$(mktemp -d)
beater=
# systemd, dockerd and containerd of one host take ten of these, and the kernel gives all that root runs 128 together: three
# labs with eight hosts and a few more use them up, and a containerd says "too many open files".
instances=/proc/sys/fs/inotify/max_user_instances enough=1024 before=
tidy() {
  [ -z "$beater" ] || kill "$beater" 2>/dev/null || :
  [ -z "$before" ] || echo "$before" >"$instances"
  rm -rf "$logs"
}
trap tidy EXIT
if [ -z "${GPUNODE_LAB_RUN:-}" ] && [ "$(cat "$instances")" -lt "$enough" ]; then
  was=$(cat "$instances")
  if { echo "$enough" >"$instances"; } 2>/dev/null; then
    before=$was
    echo "lab: fs.inotify.max_user_instances is $enough while it runs, and $was again afterwards"
  else
    echo "lab: fs.inotify.max_user_instances is $was here and stays so: some hosts may find too many open files"
  fi
fi
files() {
  for name in $slow; do [ ! -e "$directory/$name.py" ] || echo "$directory/$name.py"; done
  find "$directory" -maxdepth 1 -name 'test_*.py' -size +0 -printf '%s %p\n' | sort -rn | cut -d' ' -f2
}
files | awk '!seen[$0]++' >"$logs/files"
total=$(wc -l <"$logs/files")
began=$(date +%s)
mkdir "$logs/running" "$logs/ended"
export logs python run total
echo "lab: $total files, $jobs at a time; about $((total / jobs + 5)) minutes on a machine that does nothing else"

# The heartbeat is quiet right after a line of a file's.
last_word() { stat -c %Y "$logs/.word" 2>/dev/null || echo 0; }
while sleep "$tick_s" >/dev/null 2>&1; do
  now=$(date +%s)
  [ $((now - $(last_word))) -ge "$beat_s" ] || continue
  : >"$logs/.word"
  under_way=$(find "$logs/running" -type f -printf ' %f')
  echo "lab: $(((now - began) / 60)) min: $(find "$logs/ended" -type f | wc -l) of $total files ended; under way:$under_way"
done &
beater=$!

# shellcheck disable=SC2016  # expands in there
xargs -P "$jobs" -I FILE sh -c '
  name=$(basename "$1" .py) start=$(date +%s) status=0
  log=$logs/$name
  : >"$logs/running/$name"
  { flock 9; printf "lab: starts %s\n" "$1"; : >"$logs/.word"; } 9>"$logs/.lock"
  exec 3>&1
  {
    PYTHONUNBUFFERED=1 sh "$run" "$python" -m pytest -v "$1" 2>&1 </dev/null || echo "$?" >"$log.status"
  } | while IFS= read -r line; do
    case $line in
      *::*" PASSED"* | *::*" FAILED"* | *::*" ERROR"* | *::*" SKIPPED"* | *::*" XFAIL"*)
        { flock 9; printf "lab: %s\n" "${line##*/}" >&3; : >"$logs/.word"; } 9>"$logs/.lock" ;;
      *) printf "%s\n" "$line" ;;
    esac
  done >"$log"
  [ ! -e "$log.status" ] || status=$(cat "$log.status")
  mv "$logs/running/$name" "$logs/ended/"
  {
    flock 9
    left=$((total - $(find "$logs/ended" -type f | wc -l)))
    printf "== %s\n" "$1"
    cat "$log"
    printf "lab: ended %s after %s s, exit %s; %s of %s files left\n" "$1" "$(($(date +%s) - start))" "$status" "$left" "$total"
    : >"$logs/.word"
  } 9>"$logs/.lock"
  exit "$status"' one FILE <"$logs/files"
