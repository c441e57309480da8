# again.sh WORDS PAUSES BETWEEN COMMAND...
#
# Runs COMMAND; when it fails and its output matches WORDS (an extended regular expression), again after each of the
# PAUSES (seconds), with BETWEEN, a shell line, run before. Anything else fails at once: a package that
# another key signed is no better a minute later. $success: the exit codes of COMMAND that mean it is done, where 0 is
# not the only one.
set -u
words=$1 pauses=$2 between=$3
shift 3
out=$(mktemp)
trap 'rm -f "$out" "$out.code"' EXIT

for pause in $pauses end; do
  { "$@" </dev/null 2>&1; echo $? >"$out.code"; } | tee "$out"
  read -r code <"$out.code"
  case " ${success:-0} " in *" $code "*) exit 0 ;; esac
  if [ "$pause" = end ] || ! grep -qE "$words" "$out"; then exit "$code"; fi
  echo "this may pass: trying again in $pause s"
  sleep "$pause"
  sh -c "$between" </dev/null || :
done
