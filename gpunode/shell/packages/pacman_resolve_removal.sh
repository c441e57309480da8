# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: pacman's print of a removal. It takes nothing along: where another package needs one of
# NAMEs it refuses (65 here), and names that package.
# shellcheck disable=SC2046  # a list of names
set -- $(pacman -Qq "$@" 2>/dev/null)
[ $# -gt 0 ] || exit 0
code=0
pacman -R --print --print-format 'remove %n %v' "$@" >"$output" 2>&1 || code=$?
grep '^remove ' "$output"
! grep -q ' breaks dependency ' "$output" || code=65
exit "$code"
