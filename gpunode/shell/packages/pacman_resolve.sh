# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: pacman's print.
code=0
pacman -Sp --noconfirm --print-format 'install %n %v' "$@" >"$output" 2>&1 || code=$?
grep '^install ' "$output" || :
exit "$code"
