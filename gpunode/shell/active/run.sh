# shellcheck shell=sh disable=SC2034,SC2154
# The active tests that were asked for, in one round trip. facts/active.py puts the other files before this, and behind it
# the function `trials` and the call.

gpunode_active() { # CONTAINERS RELOAD CUDA, each 1 or 0, and the LEVEL of dcgmi diag, 0 for none, with its LIMIT_S
  SWEPT=' '
  begin || return 0
  mkdir "$T/home"
  DOCKER_CONFIG=$T/home HOME=/root; export DOCKER_CONFIG HOME
  trusted /root || HOME=$T/home
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
