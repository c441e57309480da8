# again.sh WORDS PAUSES BETWEEN COMMAND...
#
# Runs COMMAND; when it fails and its output matches WORDS (an extended regular expression), again after each of the
# PAUSES (seconds), with BETWEEN, a shell line, run before. Anything else fails at once: a package that
# another key signed is no better a minute later. $success: the exit codes of COMMAND that mean it is done, where 0 is
# not the only one.
#
# A mirror that takes connections and sends nothing costs COMMAND its whole time limit, for each file: it gets one more
# try, and apt is ended at the second such file, which is when its download has failed anyway.
set -u
words=$1 pauses=$2 between=$3
shift 3
stalled='Connection failed|[Tt]imed out|[Tt]imeout|too slow'
out=$(mktemp)
trap 'rm -f "$out" "$out.code"' EXIT

# watch PID: apt has two forms for silence, the second of a file that had begun to come. Ended, it leaves no sleep behind: what
# is left in a unit of systemd keeps that from being over, and a shutdown waits for it.
watch() {
  nap=
  trap '[ -z "$nap" ] || kill "$nap" 2>/dev/null; wait; exit 0' TERM
  while
    sleep 1 >/dev/null 2>&1 &
    nap=$!
    wait "$nap" && kill -0 "$1" 2>/dev/null
  do
    [ "$(grep -cE '^  Connection (failed|timed out)' "$out")" -ge 2 ] || continue
    echo "E: no data comes from $(sed -n 's/^Err:[0-9]* \([^ ]*\).*/\1/p' "$out" | sort -u | tr '\n' ' ')(the download was ended)"
    kill "$1" 2>/dev/null
    return
  done
}
attempt() {
  "$@" </dev/null 2>&1 &
  command=$!
  watch "$command" &
  watcher=$!
  wait "$command"
  echo $? >"$out.code"
  kill "$watcher" 2>/dev/null
  wait "$watcher"
}

silent=0
for pause in $pauses end; do
  attempt "$@" | tee "$out"
  read -r code <"$out.code"
  case " ${success:-0} " in *" $code "*) exit 0 ;; esac
  if [ "$pause" = end ] || ! grep -qE "$words|^E: no data comes" "$out"; then exit "$code"; fi
  if grep -qE "$stalled" "$out"; then silent=$((silent + 1)); fi
  [ "$silent" -lt 2 ] || exit "$code"
  echo "this may pass: trying again in $pause s"
  sleep "$pause"
  [ "$silent" -gt 0 ] || sh -c "$between" </dev/null || :
done
