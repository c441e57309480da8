# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: apt-get's simulation.
code=0
apt-get -s -q install "$@" >"$output" 2>&1 || code=$?
sed -n -e 's/^Inst \([^ ]*\) \[[^]]*\] (\([^ ]*\).*/upgrade \1 \2/p' -e 's/^Inst \([^ ]*\) (\([^ ]*\).*/install \1 \2/p' \
  -e 's/^Remv \([^ ]*\) \[\([^]]*\)\].*/remove \1 \2/p' "$output"
exit "$code"
