# shellcheck shell=sh disable=SC2154
# resolve() of simulate.sh: apt-get's simulation.
code=0
apt-get -s -q install "$@" >"$output" 2>&1 || code=$?
sed -n -e 's/^Inst \([^ ]*\) \[[^]]*\] (\([^ ]*\).*/upgrade \1 \2/p' -e 's/^Inst \([^ ]*\) (\([^ ]*\).*/install \1 \2/p' \
  -e 's/^Remv \([^ ]*\) \[\([^]]*\)\].*/remove \1 \2/p' "$output"
[ "$code" = 0 ] || exit "$code"
# A simulation names no sizes. This one takes no lock and fetches nothing: 'URL' FILE BYTES CHECKSUM, a line a file.
apt-get -q --print-uris install "$@" 2>/dev/null |
  awk '/^\047[^\047]*\047 [^ ]+ [0-9]+/ && !/^\047file:/ { sum += $3; some = 1 }
    END { if (some) printf "download %.0f\n", sum }'
