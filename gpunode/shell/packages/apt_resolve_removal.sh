# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: apt-get's simulation of a removal.
code=0
apt-get -s -q remove -y --allow-change-held-packages "$@" >"$output" 2>&1 || code=$?
sed -n 's/^Remv \([^ ]*\) \[\([^]]*\)\].*/remove \1 \2/p' "$output"
exit "$code"
