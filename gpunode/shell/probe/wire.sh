# shellcheck shell=sh
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
  (
    # At most 1 MiB of an answer (2 in a shell that counts otherwise): more, with "|" before each line, is no stream of a host.
    case $1 in gpunode_* | */nvidia-smi | */nvidia-container-cli) ulimit -f 2048 ;; esac
    "$@" >"$T/$name.out" 2>"$T/$name.err" </dev/null 3<&- 4<&- &
    child=$!
    echo "$child" >"$T/$name.pid"
    wait "$child"
    echo $? >"$T/$name.rc"
  ) >/dev/null 2>&1 </dev/null &
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
  printf '@ clock rc=0\n|epoch=%s\n|begun=%s\n|ended=%s\n' "$EPOCH" "$BEGUN" "$UP"
}

finish() { # NAME -> RC; waits until the job ends or its limit is over
  RC=
  clock; begun=$NOW
  read -r limit <"$T/$1.limit" || limit=5
  while [ ! -s "$T/$1.rc" ]; do
    clock
    if [ $((NOW - begun)) -gt "$limit" ]; then
      pid=
      read -r pid 2>/dev/null <"$T/$1.pid"
      [ -n "$pid" ] && kill -TERM "$pid" 2>/dev/null
      RC=124
      return 0
    fi
    $NAP
  done
  read -r RC <"$T/$1.rc"
}

payload() { sed 's/^/|/' "$1" 2>/dev/null; echo; } # the echo ends a last line that had no newline; blank lines are skipped

plain() { # TEXT -> PLAIN, for a header: blanks and control characters as \040, as /proc/mounts has them
  PLAIN=$1
  case $1 in
    *[![:graph:]]* | *\\*)
      PLAIN=$(printf '%s' "$1" | tr '\n\r' '??' | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g' | tr -d '\000-\037\177') ;;
  esac
}

emit() { # NAME: collect a job and print it as a section
  if [ -s "$T/$1.why" ]; then
    read -r why <"$T/$1.why"
    printf '@ %s unreadable %s\n' "$1" "$why"
    return 0
  fi
  finish "$1"
  if [ "$RC" != 0 ] && [ ! -s "$T/$1.out" ] && [ -s "$T/$1.err" ]; then
    sed 20q "$T/$1.err" >"$T/$1.msg"
    printf '@ %s rc=%s\n' "$1" "$RC"; payload "$T/$1.msg"
  else
    printf '@ %s rc=%s\n' "$1" "$RC"
    [ -s "$T/$1.out" ] && payload "$T/$1.out"
  fi
  return 0
}

show() { # NAME: print $T/NAME as a section
  printf '@ %s rc=0\n' "$1"
  [ -s "$T/$1" ] && payload "$T/$1"
  return 0
}

show_files() { # PATHS on the host...
  : >"$T/paths"
  for path in "$@"; do
    case $path in /*) ;; *) continue ;; esac
    grep -qxF -- "$path" "$T/shown" 2>/dev/null && continue
    printf '%s\n' "$path" >>"$T/shown"
    plain "$path"
    if ! located "$path"; then
      printf '@ file:%s unreadable %s\n' "$PLAIN" "$WHY_NOT"
    elif [ ! -e "$R$path" ] && [ -h "$R$path" ]; then
      link=$(readlink "$R$path" 2>/dev/null)
      printf '@ file:%s unreadable it is a symbolic link to %s, which is missing\n' "$PLAIN" "${link:-a file}"
    elif [ ! -e "$R$path" ]; then
      printf '@ file:%s absent\n' "$PLAIN"
    elif [ ! -f "$R$path" ]; then
      printf '@ file:%s unreadable not a regular file\n' "$PLAIN"
    elif [ ! -r "$R$path" ]; then
      printf '@ file:%s unreadable permission denied\n' "$PLAIN"
    else
      printf '%s\n' "$path" >>"$T/paths"
    fi
  done
  while read -r path <&3; do
    show_file "$path"
  done 3<"$T/paths"
}

show_file() { # PATH of a readable file
  link=
  if [ -h "$R$1" ]; then
    link=$(readlink -f "$R$1" 2>/dev/null || readlink "$R$1")
    link=${link#"$R"}
  fi
  put_file "$1" "$R$1" "$(stat -Lc '%a mtime=%Y' "$R$1" 2>/dev/null)" "$link"
}

put_file() { # PATH CONTENT_FILE "MODE[ mtime=SECONDS]" LINK: the section
  plain "$4"; link=${PLAIN:+ symlink=$PLAIN}
  plain "$1"
  size=$(wc -c <"$2") && size=$((size + 0))
  if [ "$size" -gt "$FILE_LIMIT" ]; then
    printf '@ file:%s unreadable over %s bytes\n' "$PLAIN" "$FILE_LIMIT"
    return 0
  fi
  sum=$(sha256sum <"$2" 2>/dev/null) && sum=" sha256=${sum%% *}" || sum=
  printf '@ file:%s bytes=%s%s%s%s\n' "$PLAIN" "$size" "${3:+ mode=$3}" "$sum" "$link"
  [ "$size" -gt 0 ] && payload "$2"
  return 0
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
  grep -qxF -- "$2" "$T/shown" 2>/dev/null && return 0
  printf '%s\n' "$2" >>"$T/shown"
  user_file "$1"
  plain "$2"
  case $LOOK in
    found*) put_file "$2" "$T/$1.file" "${LOOK#found }" "${LINK#"$R"}" ;;
    *) printf '@ file:%s %s\n' "$PLAIN" "$LOOK" ;;
  esac
}

word() { # FILE -> WORD: its first line, "-" when there is none
  WORD=
  { read -r WORD <"$1"; } 2>/dev/null
  WORD=${WORD:--}
}
