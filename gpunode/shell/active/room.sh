# shellcheck shell=sh disable=SC2034,SC2154
# Active tests: the room they work in, one gpunode at a time, and nothing of it left behind. Sent after daemon/query.sh,
# trust.sh and probe/wire.sh, whose T, R and BINS are set here.
#
# Rules:
# - All that is made bears one name (gpunode-test), so that whoever comes next removes what a killed run left.
# - A tool that outlives its limit gets TERM once, never KILL (a killed NVML client has frozen GPUs: dcgm-exporter#84).
# - No network, no image that is pulled, no program and no file that others than root could have put there.

T=/run/gpunode-test      # gone with a reboot; who has made it tests this host
ROOM=/var/lib/gpunode-test # /run may not be executed from

began_at() { # PID -> when it began, in clock ticks since boot
  began=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) || return 1
  # shellcheck disable=SC2086  # fields
  set -- $began
  echo "${20:-}"
}

room() { # -> true, or WHY_NOT: another gpunode is at work, or there is no place to work in
  if [ -n "$(find /run/gpunode/lock -maxdepth 0 -mmin -1 2>/dev/null)" ]; then # it beats every ten seconds
    WHY_NOT='locked another gpunode is at work on this host'; return 1
  fi
  if ! mkdir -m 700 "$T" 2>/dev/null; then
    pid='' began=''
    { read -r pid began <"$T/owner"; } 2>/dev/null
    if [ -z "$pid" ] && [ -n "$(find "$T" -maxdepth 0 -mmin -1 2>/dev/null)" ]; then
      WHY_NOT='locked another gpunode has begun to test this host'; return 1
    fi
    if [ -n "$pid" ] && [ "$(began_at "$pid")" = "$began" ]; then WHY_NOT="locked another gpunode tests this host (process $pid)"; return 1; fi
    rm -rf "$T" 2>/dev/null
    mkdir -m 700 "$T" 2>/dev/null || { WHY_NOT="$T cannot be made"; return 1; }
  fi
  own=$(exec sh -c 'echo "$PPID"') # $$ is that of the shell around this one
  echo "$own $(began_at "$own")" >"$T/owner" || { WHY_NOT="$T cannot be written"; return 1; }
  trap leave 0
  trap 'exit 130' HUP INT QUIT PIPE TERM
  for path in /var /var/lib; do trusted "$path" || return 1; done
  rm -rf "$ROOM"
  mkdir -m 700 "$ROOM" 2>/dev/null || { WHY_NOT="$ROOM cannot be made"; return 1; }
}

begin() { # the surroundings of every test, and the room; false: why there is none has been said
  R='' TICKS=0
  LC_ALL=C; LANG=C; export LC_ALL LANG
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
  # Nobody's settings: no proxy, no context, no plugin of a home directory, no library that somebody put before another.
  unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY LD_PRELOAD LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST
  cd / || exit 1
  umask 077
  printf '@gpunode-facts 1\n'
  who
  BINS=
  for bin in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    [ -d "$bin" ] && trusted "$bin" && BINS="$BINS$bin "
  done
  if sleep 0.02 2>/dev/null; then NAP='sleep 0.02'; else NAP='sleep 1'; fi
  if ! room; then
    unsaid room "$WHY_NOT"
    printf '@end\n'
    return 1
  fi
  printf '@ room rc=0\n'
}

leave() { # in every ending
  trap '' HUP INT QUIT PIPE TERM
  sweep
  rm -rf "$ROOM" 2>/dev/null || rm -rf "$ROOM" 2>/dev/null
  rm -rf "$T" 2>/dev/null || rm -rf "$T" 2>/dev/null
}

sweep() { :; } # containers.sh has one

within() { # NAME LIMIT_S PROGRAM ARGUMENT... -> RC; what it printed is in $T/NAME.out
  within=$1
  rm -f "$T/$1.out" "$T/$1.err" "$T/$1.rc" "$T/$1.pid" "$T/$1.why"
  job "$1" "$2" do_together "$@"
  finish "$within"
}

do_together() { shift 2; exec "$@" 2>&1; } # exec: what is ended at the limit is the program

said() { # NAME WHAT: the section WHAT, of what the job NAME printed; at most 40 lines and 8 KiB
  if [ "$RC" = 124 ]; then
    printf '@ %s unreadable it did not answer within its limit\n' "$2"
    return
  fi
  head -c 8192 "$T/$1.out" 2>/dev/null | sed 40q >"$T/$1.msg"
  printf '@ %s rc=%s\n' "$2" "$RC"
  payload "$T/$1.msg"
}

unsaid() { # WHAT WHY
  plain_why=$(printf '%s' "$2" | tr '\n\r' '  ' | tr -d '\000-\037\177' | head -c 400)
  printf '@ %s unreadable %s\n' "$1" "$plain_why"
}
