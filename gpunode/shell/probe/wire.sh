# shellcheck shell=sh disable=SC2034
# (VALUE is read in engines.sh and daemons.sh.)
# Jobs in the background, each with its limit, and the sections of the answer (facts/wire.py reads them).

FILE_LIMIT=131072

find_tool() { # NAME -> TOOL, its path; busybox ash's own applets do not count, as `command -v` would have it
  TOOL=
  for bin in $BINS; do
    [ -f "$bin/$1" ] && [ -x "$bin/$1" ] && trusted "${bin#"$R"}/$1" && TOOL=$bin/$1 && return 0
  done
  return 1
}

gpunode_tool() { # what effective.sh runs
  case $1 in
    /*) program "$1" && TOOL=$R$1 ;;
    *) find_tool "$1" ;;
  esac
}

job() { # NAME LIMIT_S COMMAND...: start it in the background
  name=$1; printf '%s' "$2" >"$T/$name.limit"; shift 2
  case $1 in
    do_* | /* | gpunode_*) ;;
    *) if find_tool "$1"; then shift; set -- "$TOOL" "$@"; else echo 127 >"$T/$name.rc"; return 0; fi ;;
  esac
  if [ -r /proc/self/stat ]; then
    alone "$@" >"$T/$name.out" 2>"$T/$name.err" </dev/null 3<&- 4<&- &
    life_of "$!"
    echo "$! $BEGAN" >"$T/$name.pid"
  else # nobody can see when it has ended: it says so
    {
      alone "$@" >"$T/$name.out" 2>"$T/$name.err" </dev/null 3<&- 4<&- &
      echo "$!" >"$T/$name.pid"
      wait "$!"
      echo $? >"$T/$name.rc"
    } >/dev/null 2>&1 </dev/null &
  fi
}

alone() { # COMMAND...: in a process of its own, which becomes the command where that is a program
  # At most 1 MiB of an answer (2 in a shell that counts otherwise): more, with "|" before each line, is no stream of a host.
  case $1 in gpunode_* | */nvidia-smi | */nvidia-container-cli) ulimit -f 2048 ;; esac
  case $1 in
    /*) exec "$@" ;;
    *) "$@" ;;
  esac
}

life_of() { # PID -> STATE and BEGAN, its start in ticks; "" when it is gone. The name between them may hold blanks and brackets
  STATE='' BEGAN=''
  read -r life 2>/dev/null <"/proc/$1/stat" || return 0
  set -f
  # shellcheck disable=SC2086
  set -- ${life##*) }
  set +f
  STATE=$1 BEGAN=${20}
}

over() { # NAME of a job -> true: it has ended, and RC says how
  if [ -s "$T/$1.rc" ]; then read -r RC <"$T/$1.rc"; return 0; fi
  job_pid='' job_began=''
  read -r job_pid job_began 2>/dev/null <"$T/$1.pid"
  [ -n "$job_pid" ] && [ -r /proc/self/stat ] || return 1
  life_of "$job_pid"
  case $STATE:$BEGAN in [!ZX]:"$job_began") return 1 ;; esac # a zombie until we wait; its number may be another's by now
  wait "$job_pid"
  RC=$?
  echo "$RC" >"$T/$1.rc"
}

refuse() { # NAME WHY: it was not asked
  printf '%s\n' "$2" >"$T/$1.why"
}

ask() { # NAME LIMIT_S SOCKET COMMAND...: a job that speaks to a daemon of this host
  ask_name=$1 ask_limit=$2 ask_socket=$3; shift 3
  if own_socket "$ask_socket"; then
    job "$ask_name" "$ask_limit" "$@"
    if [ -n "$SOCKET_MODE" ]; then printf '%s %s\n' "$SOCKET_MODE" "$ask_socket" >>"$T/socket_modes"; fi
  else refuse "$ask_name" "$WHY_NOT"; fi
  printf '%s\n' "$ask_name" >>"$T/slow"
}

clock() { # -> NOW, whole seconds since boot
  NOW=$TICKS
  if read -r NOW _ 2>/dev/null </proc/uptime; then NOW=${NOW%%.*}; else TICKS=$((TICKS + 1)); fi
}

up() { # -> UP, seconds since boot as the kernel writes them; "" where it does not
  UP=
  { read -r UP _ </proc/uptime; } 2>/dev/null
}

show_clock() { # the section `clock`, without a process: what the clock said (look_up), and for how long we are at work
  up
  case $EPOCH:$BEGUN:$UP in *[!0-9.:]* | :* | *::* | *:) return 0 ;; esac
  printf 'epoch=%s\nbegun=%s\nended=%s\n' "$EPOCH" "$BEGUN" "$UP" >"$T/clock"
  show clock
}

finish() { # NAME -> RC; waits until the job ends or its limit is over
  RC=
  clock; begun=$NOW
  read -r limit <"$T/$1.limit" || limit=5
  while ! over "$1"; do
    clock
    if [ $((NOW - begun)) -gt "$limit" ]; then
      [ -n "$job_pid" ] && kill -TERM "$job_pid" 2>/dev/null
      RC=124
      return 0
    fi
    $NAP
  done
}

# The answer is put together of pieces, headers and files in turn, and one sed for all of them puts "|" before the lines
# of files. It knows headers by MARK, which nobody can know who wrote a file.

say() { # LINE: a header
  if [ -z "$HEADS" ]; then
    NUMBER=$((NUMBER + 1)) HEADS=$T/.heads.$NUMBER
    printf '%s\n' "$HEADS" >>"$T/.pieces"
  fi
  printf '%s%s\n' "$MARK" "$1" >>"$HEADS"
}

piece() { # FILE: what follows the last header
  [ -s "$1" ] || return 0
  printf '%s\n' "$1" >>"$T/.pieces"
  HEADS=
}

begin_pieces() { # false: there is nothing random here, and without it any file could hold a header
  word /proc/sys/kernel/random/uuid; MARK=$WORD
  case $MARK in ????????-*) ;; *) MARK=$(od -An -v -tx1 -N16 /dev/urandom 2>/dev/null | tr -d ' \n') ;; esac
  [ "${#MARK}" -ge 32 ] || return 1
  MARK="@$MARK " NUMBER=0 SHOWN=$NL
  printf '/^%s/{\ns///\nb\n}\ns/^/|/\n' "$MARK" >"$T/.frame" # a file: everybody can read what a process was started with
  no_pieces
}

no_pieces() { : >"$T/.pieces"; HEADS=; }

flush() { # all pieces go out
  set --
  while IFS= read -r path <&3; do set -- "$@" "$path"; done 3<"$T/.pieces"
  [ $# = 0 ] || { sed -f "$T/.frame" "$@"; echo; } # the echo ends a last line without a newline; blank lines are skipped
  no_pieces
}

payload() { sed 's/^/|/' "$1" 2>/dev/null; echo; } # at once

plain() { # TEXT -> PLAIN, for a header: blanks and control characters as \040, as /proc/mounts has them
  PLAIN=$1
  case $1 in
    *[![:graph:]]* | *\\*)
      PLAIN=$(printf '%s' "$1" | tr '\n\r' '??' | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g' | tr -d '\000-\037\177') ;;
  esac
}

emit() { # NAME: the section of a job, once it has ended
  if [ -s "$T/$1.why" ]; then
    read -r why <"$T/$1.why"
    say "@ $1 unreadable $why"
    return 0
  fi
  finish "$1"
  say "@ $1 rc=$RC"
  if [ "$RC" != 0 ] && [ ! -s "$T/$1.out" ] && [ -s "$T/$1.err" ]; then
    sed 20q "$T/$1.err" >"$T/$1.msg"
    piece "$T/$1.msg"
  else
    piece "$T/$1.out"
  fi
}

show() { # NAME: $T/NAME is a section
  say "@ $1 rc=0"
  piece "$T/$1"
}

first_time() { # PATH: true for one that is not among the files of the answer; it is now
  case $SHOWN in *"$NL$1$NL"*) return 1 ;; esac
  SHOWN=$SHOWN$1$NL
}

show_files() { # PATHS on the host...
  : >"$T/paths"; : >"$T/stats"
  for path in "$@"; do
    case $path in /*) ;; *) continue ;; esac
    first_time "$path" || continue
    plain "$path"
    if ! located "$path"; then
      say "@ file:$PLAIN unreadable $WHY_NOT"
    elif [ ! -e "$R$path" ] && [ -h "$R$path" ]; then
      link=$(readlink "$R$path" 2>/dev/null)
      say "@ file:$PLAIN unreadable it is a symbolic link to ${link:-a file}, which is missing"
    elif [ ! -e "$R$path" ]; then
      say "@ file:$PLAIN absent"
    elif [ ! -f "$R$path" ]; then
      say "@ file:$PLAIN unreadable not a regular file"
    elif [ ! -r "$R$path" ]; then
      say "@ file:$PLAIN unreadable permission denied"
    else
      printf '%s\n' "$path" >>"$T/paths"
    fi
  done
  set --
  while IFS= read -r path <&3; do set -- "$@" "$R$path"; done 3<"$T/paths"
  [ $# = 0 ] || stat -Lc '%s %a mtime=%Y %n' "$@" >"$T/stats" 2>/dev/null
  [ $# = 0 ] || while IFS= read -r line <&3; do
    size=${line%% *} line=${line#* }
    mode=${line%% *} line=${line#* }
    path=${line#* } link=
    if [ -h "$path" ] && located "${path#"$R"}"; then link=$REAL; fi
    put_file "${path#"$R"}" "$path" "$size" "$mode ${line%% *}" "$link"
  done 3<"$T/stats"
}

put_file() { # PATH CONTENT_FILE BYTES "MODE[ mtime=SECONDS]" LINK: the section
  plain "$5"; link=${PLAIN:+ symlink=$PLAIN}
  plain "$1"
  if [ "$3" -gt "$FILE_LIMIT" ]; then
    say "@ file:$PLAIN unreadable over $FILE_LIMIT bytes"
    return 0
  fi
  say "@ file:$PLAIN bytes=$3${4:+ mode=$4}$link"
  piece "$2"
}

user_file() { # NAME of a do_user_file job -> $T/NAME.file, its first line in LOOK, its second in LINK
  finish "$1"
  LOOK='' LINK=''
  { read -r LOOK && read -r LINK; } <"$T/$1.out"
  case $LOOK in
    'found '[0-7][0-7][0-7] | 'found '[0-7][0-7][0-7][0-7]) tail -n +3 "$T/$1.out" >"$T/$1.file" ;;
    absent | 'unreadable permission denied' | 'unreadable not a regular file') : >"$T/$1.file" ;;
    'unreadable it is a symbolic link to a file that is missing' | "unreadable $NO_WAY") : >"$T/$1.file" ;;
    *) : >"$T/$1.file"
      LOOK='unreadable it could not be read with the rights of its user' ;;
  esac
}

show_user_file() { # NAME PATH
  first_time "$2" || return 0
  user_file "$1"
  plain "$2"
  case $LOOK in
    found*) put_file "$2" "$T/$1.file" "$(($(wc -c <"$T/$1.file")))" "${LOOK#found }" "${LINK#"$R"}" ;;
    *) say "@ file:$PLAIN $LOOK" ;;
  esac
}

value_of() { # FILE KEY -> VALUE: what stands behind KEY= in the first line that has it
  VALUE=
  [ -r "$1" ] || return 0
  while IFS= read -r line; do
    case $line in "$2="*) VALUE=${line#*=}; return 0 ;; esac
  done <"$1"
}

unrooted() { # COMMAND...: what it prints, with the host's own paths at the beginning of lines
  if [ -n "$R" ]; then "$@" | sed "s|^$R/|/|"; else "$@"; fi
}

word() { # FILE -> WORD: its first line, "-" when there is none
  WORD=
  { read -r WORD <"$1"; } 2>/dev/null
  WORD=${WORD:--}
}
