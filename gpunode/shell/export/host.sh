# shellcheck shell=sh disable=SC2154
# What a pod has its host do, one word at a time; the words of setup follow in WORDS. Sent after bring.sh. gpunode runs in a unit of
# its own, UNIT: a pod that is deleted, or an engine that restarts, does not end it.

LOG=$STATE/setup.log
REBOOT_S=900

spec() { # on standard input
  own_state
  new=$(mktemp "$STATE/new.XXXXXX") && cat >"$new" && mv -f "$new" "$STATE/spec.yaml" || die 1 "the spec cannot be kept in $STATE"
}

at_work() { case $(systemctl is-active "$UNIT.service" 2>/dev/null) in active | activating | deactivating) return 0 ;; esac; return 1; }

setup() { # -> gpunode's exit code
  command -v systemd-run >/dev/null || die 4 'this host has no systemd-run'
  while at_work; do sleep 2; done # of an earlier pod
  wait_for_resumed
  rm -f "$LOG"
  code=0
  systemd-run --quiet --collect --wait --unit="$UNIT" --description='gpunode setup, started by a pod' --setenv=HOME=/root \
    --property=StandardOutput="file:$LOG" --property=StandardError="file:$LOG" --property=UMask=0077 \
    -- "$PYTHON" -I "$PYZ" setup --yes --spec "$STATE/spec.yaml" "$@" || code=$?
  tail -c 65536 "$LOG" 2>/dev/null
  if [ "$code" = 6 ] && reboot_is_asked_for; then sleep "$REBOOT_S"; fi
  return "$code"
}

word=$1
shift
eval "set -- $WORDS" # each quoted, by gpunode export
find_python
case $word in
  bring) bring ;;
  spec) spec ;;
  setup) bring </dev/null; setup "$@" ;;
  check) bring </dev/null; "$PYTHON" -I "$PYZ" check --spec "$STATE/spec.yaml" ;;
esac
