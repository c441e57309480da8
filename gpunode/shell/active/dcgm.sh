# shellcheck shell=sh disable=SC2034,SC2154
# NVIDIA's own diagnosis, where it is installed: dcgmi asks the DCGM daemon of this host to run it.

dcgm() { # LEVEL LIMIT_S
  if ! find_tool dcgmi; then unsaid dcgm 'dcgmi is not installed, or not by root alone'; return; fi
  within dcgm "$2" "$TOOL" diag -r "$1" -j
  if [ "$RC" = 124 ]; then unsaid dcgm "dcgmi diag -r $1 did not end within $2 s"; return; fi
  head -c 262144 "$T/dcgm.out" >"$T/dcgm.msg"
  printf '@ dcgm rc=0\n'
  payload "$T/dcgm.msg"
  printf '@ dcgm:code rc=%s\n' "$RC"
}
