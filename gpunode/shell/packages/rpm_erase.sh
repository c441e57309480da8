# rpm_erase.sh INVENTORY NAME...   (before it: resolve() of rpm_resolve_removal.sh, and came_along(); after it: a removal)
#
# Exit 65: another package would have to go as well that did not come with NAMEs. Nothing is changed by then.
(
  set -eu
  export LC_ALL=C.UTF-8
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  came_along "$@" >"$work/may"
  shift
  output=$work/output code=0
  resolve "$@" >"$work/answer" || code=$?
  [ "$code" = 0 ] || { cat "$output" >&2; exit "$code"; }
  others=$(sed 's/^remove \([^ ]*\) .*/\1/' "$work/answer" | sort -u | comm -23 - "$work/may")
  [ -n "$others" ] || exit 0
  # shellcheck disable=SC2086  # words on one line
  echo "these packages need what would be removed, and gpunode did not install them:" $others >&2
  exit 65
)
code=$?
[ "$code" = 0 ] || exit "$code"
