# shellcheck shell=sh disable=SC2034,SC2154
# The active tests that were asked for, in one round trip. facts/active.py puts the other files before this, and behind it
# the function `trials` and the call.

gpunode_active() { # CONTAINERS RELOAD CUDA, each 1 or 0, and the LEVEL of dcgmi diag, 0 for none, with its LIMIT_S
  R='' TICKS=0 SWEPT=' '
  LC_ALL=C; LANG=C; export LC_ALL LANG
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
  # Nobody's settings: no proxy, no context, no plugin of a home directory, no library that somebody put before another.
  unset LD_PRELOAD LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES DOCKER_HOST DOCKER_CONTEXT CONTAINER_HOST
  cd / || return 1
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
    return 0
  fi
  mkdir "$T/home"
  DOCKER_CONFIG=$T/home HOME=/root; export DOCKER_CONFIG HOME
  trusted /root || HOME=$T/home
  printf '@ room rc=0\n'
  if [ "$1" = 1 ]; then
    sweep # what a killed run left
    rm -f "$T"/out.* "$T/left"
    containers "$2"
    sweep
    if [ -s "$T/left" ]; then printf '@ left rc=0\n'; payload "$T/left"; fi
  fi
  sweep() { :; } # done
  [ "$3" = 0 ] || cuda
  [ "$4" = 0 ] || dcgm "$4" "$5"
  printf '@end\n'
}
