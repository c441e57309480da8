# retry.sh WORDS PAUSES BETWEEN COMMAND...
#
# Runs COMMAND; when it fails and its output matches WORDS (an extended regular expression), again after each of the
# PAUSES (seconds), with BETWEEN, a shell line, run before. Anything else fails at once: a package that
# another key signed is no better a minute later. $success: the exit codes of COMMAND that mean it is done, where 0 is
# not the only one.
#
# A mirror that takes connections and sends nothing costs COMMAND its whole time limit, for each file: it gets one more
# try, and is ended before that limit (watch, in silence.sh, which is put before this).
# Its exit code is 75 then.
#
# $despite: what COMMAND prints of a failure (an extended regular expression) where its exit code says nothing of it.
set -u
words=$1 pauses=$2 between=$3
shift 3
stalled='Connection failed|[Tt]imed out|[Tt]imeout|too slow|^E: no data c'
out=$(mktemp)
trap 'rm -f "$out" "$out.code"' EXIT

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
  [ -z "${despite:-}" ] || ! grep -qE "$despite" "$out" || code=4
  ! grep -q '^E: no data c' "$out" || code=75
  case " ${success:-0} " in *" $code "*) exit 0 ;; esac
  if [ "$pause" = end ] || ! grep -qE "$words|^E: no data c" "$out"; then exit "$code"; fi
  if grep -qE "$stalled" "$out"; then silent=$((silent + 1)); fi
  [ "$silent" -lt 2 ] || exit "$code"
  echo "this may pass: trying again in $pause s"
  sleep "$pause"
  [ "$silent" -gt 0 ] || attempt sh -c "$between" | tee "$out"
done
