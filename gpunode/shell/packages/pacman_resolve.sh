# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: pacman's print.
code=0
pacman -Sp --noconfirm --print-format 'install %n %v %s' "$@" >"$output" 2>&1 || code=$?
awk '/^install / { print $1, $2, $3; sum += $4; some = 1 } END { if (some) printf "download %.0f\n", sum }' "$output"
exit "$code"
