# simulate.sh MANAGER COUNT PATTERN... WORD...        (before it: resolve(), which gets the WORDs)
#
# The resolver's own answer to an install (WORD...: the switches and names), read-only, one line a package:
#   install NAME VERSION | upgrade NAME VERSION | downgrade NAME VERSION | remove NAME VERSION
# and, where the manager says it, what is still to be fetched: download BYTES
# resolve() asks the manager, puts the manager's own output into the file $output, prints these lines, ends with its code.
# Exit 65: it would remove a package that matches none of the COUNT patterns. Any other failure is the resolver's own.
set -eu
manager=$1 count=$2
shift 2
LC_ALL=C.UTF-8
export LC_ALL
mine=
while [ "$count" -gt 0 ]; do
  mine="$mine $1"
  count=$((count - 1))
  shift
done

answer=$(mktemp)
output=$answer.out
trap 'rm -f "$answer" "$output"' EXIT
code=0
resolve "$@" >"$answer" || code=$?
[ "$code" = 0 ] || { cat "$output" >&2; exit "$code"; }
cat "$answer"

set -f # patterns of names, and not of files that lie where this runs
foreign=$(awk '$1 == "remove" { print $2 }' "$answer" | while read -r name; do
  for pattern in $mine; do
    # shellcheck disable=SC2254  # a pattern it is
    case $name in $pattern) continue 2 ;; esac
  done
  echo "$name"
done)
# shellcheck disable=SC2086  # words on one line
[ -z "$foreign" ] || { echo "$manager would remove what is not the driver's:" $foreign >&2; exit 65; }
