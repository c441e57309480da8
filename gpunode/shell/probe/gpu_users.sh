# shellcheck shell=sh disable=SC2010
# (ls: of descriptors only numbers are taken.)
# Who holds the GPUs, and which of them hang or are dead: looked at twice, since who reads a file is in state D for a moment too.

SUSPECTS_LIMIT=64

do_busy() { # PID COMMAND of processes that hold /dev/nvidia*; $T/busy_uids: PID UID
  : >"$T/busy_uids"
  # The fd directories' listings have "PATH -> /dev/nvidia0"; a path line "/proc/PID/fd:" comes before its entries.
  ls -l "$R"/proc/[0-9]*/fd 2>/dev/null | sed -n -e '/^\/.*\/fd:$/{s/\/fd:$//;s/.*\///;h;}' -e '/-> \/dev\/nvidia/{g;p;}' |
    sort -un | while read -r pid; do
    # The name of an open file may hold line breaks and imitate all of that: each process is checked by itself.
    case $pid in *[!0-9]* | '') continue ;; esac
    ls -l "$R/proc/$pid/fd" 2>/dev/null | grep -q -e '-> /dev/nvidia' || continue
    word "$R/proc/$pid/comm"
    printf '%s %s\n' "$pid" "$WORD" # an echo stops at a "\c" in it
    namespaces_of "$R/proc/$pid/status" 2>/dev/null
    echo "$pid $OWNER" >>"$T/busy_uids"
  done
  suspects >"$T/suspects" 2>/dev/null
}

wait_of() { # PID -> LIFE, its state as one letter, and PARENT; false where it is gone
  LIFE=- PARENT=-
  { read -r line <"$R/proc/$1/stat"; } 2>/dev/null || return 1
  line=${line##*) } # its name stands between brackets, and may hold any
  LIFE=${line%% *} line=${line#* }
  PARENT=${line%% *}
}

waits() { # PID -> WAITS: how often it has waited in its life; the same number twice is one wait
  WAITS=-
  while read -r key number; do
    case $key in voluntary_ctxt_switches:) WAITS=$number ;; esac
  done <"$R/proc/$1/status"
}

suspects() { # of $T/busy.out, first its time: PID STATE "holds"|"threads"|PARENT WAITS of what waits in the kernel, or ended and is still there
  clock; echo "$NOW"
  held=' '
  while read -r pid _; do
    held="$held$pid "
    if wait_of "$pid" && [ "$LIFE" = D ] && waits "$pid"; then echo "$pid D holds $WAITS"; fi
  done <"$T/busy.out"
  for path in "$R"/proc/[0-9]*; do
    pid=${path##*/}
    wait_of "$pid" && [ "$LIFE" = Z ] || continue
    case $held in
      *" $PARENT "*) echo "$pid Z $PARENT -" ;;
      *) if outlived "$path"; then echo "$pid Z threads -"; fi ;;
    esac
  done
}

outlived() { # /proc/PID of a zombie: a thread of it is left, and holds a GPU
  set -- "$1"/task/[0-9]*
  [ $# -gt 1 ] && ls -l "${1%/*}"/[0-9]*/fd 2>/dev/null | grep -q -e '-> /dev/nvidia'
}

stuck() { # PID STATE SECONDS "holds"|"threads"|PARENT COMMAND of suspects whose wait is the same at the second look
  count=0
  clock
  read -r since
  while [ "$count" -lt "$SUSPECTS_LIMIT" ] && read -r pid state how waited; do
    wait_of "$pid" && [ "$LIFE" = "$state" ] || continue
    if [ "$state" = D ]; then waits "$pid"; [ "$WAITS" = "$waited" ] || continue; fi
    count=$((count + 1))
    word "$R/proc/$pid/comm"
    printf '%s %s %s %s %s\n' "$pid" "$state" "$((NOW - since))" "$how" "$WORD"
  done
}

look_again() { # the section `stuck`, where it was looked at before
  [ -e "$T/busy.limit" ] || return 0
  RC=
  read -r RC 2>/dev/null <"$T/busy.rc"
  if [ "$RC" = 0 ]; then show busy_uids; fi
  if [ "$RC" = 0 ] && [ -s "$T/suspects" ]; then
    stuck <"$T/suspects" >"$T/stuck" 2>/dev/null
    show stuck
  else
    refuse stuck 'who holds the GPUs is not known'
    emit stuck
  fi
}
