# shellcheck shell=sh disable=SC2154
# watch PID: end a download that gets no data, and name the server. Put before retry.sh; $out is a file with its output.
#
# One that gives up each file after a while is ended at the second, which is when its download has failed anyway. Whatever
# does nothing at all for longer than that is ended: some wait three minutes for each file, and some for ever.
silence_s=45 look_s=5

# tree PID: its number and those of its descendants. /proc/PID/status writes any name of a process in one line.
tree() {
  grep -Hs '^PPid:' /proc/[0-9]*/status | awk -F '[/:\t ]+' -v top="$1" '{ parent[$3] = $6 } END {
    for (pid in parent) { at = pid; for (depth = 0; depth < 64 && at in parent && at != top; depth++) at = parent[at]
      if (at == top) print pid } }' | sort -n
}
# work PID...: the bytes that they have read and written, and their processor time in hundredths of a second; nothing
# where that cannot be seen. What is received counts as it is written to a file.
work() {
  for pid; do
    cat "/proc/$pid/io" "/proc/$pid/stat" 2>/dev/null || { echo unseen; break; }
  done | awk '/^[rw]char:/ { bytes += $2 } sub(/^[0-9]+ \(.*\) /, "") { ticks += $12 + $13 }
    /^unseen/ { unseen = 1 } END { if (!unseen) printf "%.0f %.0f\n", bytes, ticks }'
}
# idle PID: it waits for data. A process of its began or ended, 4 KiB or a second's work since the last such sign: it does not.
processes='' bytes=0 ticks=0
idle() {
  now=$(tree "$1")
  # shellcheck disable=SC2046,SC2086  # numbers
  set -- $(work $now)
  if [ $# = 2 ] && [ "$now" = "$processes" ] && [ $(($1 - bytes)) -lt 4096 ] && [ $(($2 - ticks)) -lt 100 ]; then
    ! tail -n 1 "$out" | grep -qE '[Ww]aiting for|is locked' # another package manager
    return
  fi
  processes=$now bytes=${1:-0} ticks=${2:-0}
  return 1
}
# names: "ADDRESS NAME" of the servers in the files $sources, as far as that is known within ten seconds
names() {
  # shellcheck disable=SC2086  # patterns
  hosts=$(cat ${sources:-} </dev/null 2>/dev/null | grep -v '^ *#' | grep -oE '://[A-Za-z0-9.-]+' | sed 's|://||' | sort -u | head -n 40)
  # shellcheck disable=SC2016,SC2086  # expands in there; a list
  timeout 10 sh -c 'for host; do getent ahosts "$host" | sed "s/ .*/ $host/"; done' sh $hosts | sort -u
}
# peers PID...: the servers that they are connected to, or try to be
peers() {
  connections=$(ss -tnp 2>/dev/null | grep -E "pid=($(echo "$@" | tr ' ' '|'))," | awk '{ print $5 }' | sort -u)
  [ -n "$connections" ] || return 0
  known=$(names)
  for peer in $connections; do
    address=${peer%:*} address=${address#[}
    echo "$known" | awk -v address="${address%]}" -v peer="$peer" '
      $1 == address && n++ < 3 { name = name ? name " or " $2 : $2 } END { printf " %s", name ? name " (" peer ")" : peer }'
  done
}
# end PID WHY: say why, and end it with its descendants, by force after five seconds, though retry.sh needs no watch by then.
end() {
  trap '' TERM
  printf '\nE: no data c%s\n' "$2" # its own last line may have no end
  all=$(tree "$1")
  # shellcheck disable=SC2086
  kill $all 2>/dev/null
  for _ in 1 2 3 4 5; do
    sleep 1
    left=$(for pid in $all; do [ ! -e "/proc/$pid" ] || echo "$pid"; done)
    [ -n "$left" ] || return 0
  done
  # shellcheck disable=SC2086
  kill -KILL $left 2>/dev/null
}

# There are two forms for silence, the second of a file that had begun to come. Ended, it leaves no sleep behind.
watch() {
  nap='' looked=0 since=
  trap '[ -z "$nap" ] || kill "$nap" 2>/dev/null; wait; exit 0' TERM
  while
    sleep 1 >/dev/null 2>&1 &
    nap=$!
    wait "$nap" && kill -0 "$1" 2>/dev/null
  do
    if [ "$(grep -cE '^  Connection (failed|timed out)' "$out")" -ge 2 ]; then
      end "$1" "omes from $(sed -n 's/^Err:[0-9]* \([^ ]*\).*/\1/p' "$out" | sort -u | tr '\n' ' ')(the download was ended)"
      return
    fi
    read -r up _ 2>/dev/null </proc/uptime && up=${up%%.*} || continue # nobody sets this clock
    [ $((up - looked)) -ge "$look_s" ] || continue
    looked=$up
    idle "$1" && [ -n "$since" ] || since=$up
    [ $((up - since)) -ge "$silence_s" ] || continue
    # shellcheck disable=SC2046  # numbers
    from=$(peers $(tree "$1"))
    last=$(grep . "$out" | tail -n 1 | cut -c 1-200)
    end "$1" "ame for $((up - since)) s from${from:- its mirror} (the download was ended); the last line before: $last"
    return
  done
}
