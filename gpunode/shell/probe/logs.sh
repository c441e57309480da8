# shellcheck shell=sh disable=SC2154
# (probe/run.sh, probe/wire.sh and trust.sh, which are sent before it, set what it reads.)
# What the logs say, for a support bundle: read-only, one round trip, in the probe's form (facts/wire.py).
# Each log's newest lines and bytes, so that all together stay below what an answer may have. LOG_UNITS: names of units.

LOG_LINES=1000 LOG_BYTES=49152
KERNEL_LINES=3000 KERNEL_BYTES=262144
MAKE_LOGS=3 MAKE_BYTES=131072
# Of the kernel's log what concerns GPUs, their buses, modules, memory and hangs: the rest is nobody's business.
KERNEL_WORDS='NVRM|nvidia|nouveau|nova_core|Xid|AER|PCIe Bus Error|pcieport|Hardware Error|[Mm]achine check|EDAC|mce:|Out of memory|oom-kill|blocked for more than|BUG:|Oops|Call Trace|module verification|is rejected|lockdown|DMAR|IOMMU|iommu|Linux version|Command line'

do_unit_log() { # UNIT
  find_tool journalctl || return 127
  "$TOOL" -u "$1" -n "$LOG_LINES" -o short-iso --no-pager -q 2>&1 | tail -c "$LOG_BYTES"
}

do_kernel_extract() {
  { { find_tool dmesg && "$TOOL" 2>/dev/null; } ||
    { find_tool journalctl && "$TOOL" -k -b -o short-monotonic --no-pager -q; }; } |
    grep -aE "$KERNEL_WORDS" | tail -n "$KERNEL_LINES" | tail -c "$KERNEL_BYTES"
}

make_logs() { # DKMS's logs of the driver, the newest first, and the one that gpunode kept of a build that failed
  # shellcheck disable=SC2012  # names of modules, versions and kernels, in directories of root's
  ls -td "$R"/var/lib/gpunode/make.log "$R"/var/lib/dkms/nvidia*/*/build/make.log \
    "$R"/var/lib/dkms/nvidia*/*/*/*/log/make.log 2>/dev/null | head -n "$MAKE_LOGS"
}

do_make_log() { # PATH
  printf '# %s\n' "${1#"$R"}"
  tail -c "$MAKE_BYTES" "$1"
}

gpunode_logs() {
  begin_answer "$@" || return 0
  for unit in $LOG_UNITS; do job "unit:$unit" 15 do_unit_log "$unit"; done
  job kernel_extract 15 do_kernel_extract
  number=0
  make_logs >"$T/make_logs"
  while read -r path; do
    number=$((number + 1))
    if [ -f "$path" ] && trusted "${path#"$R"}"; then job "make:$number" 5 do_make_log "$path"
    else refuse "make:$number" "${WHY_NOT:-it is no file}"; fi
  done <"$T/make_logs"
  for unit in $LOG_UNITS; do emit "unit:$unit"; done
  emit kernel_extract
  while [ "$number" -gt 0 ]; do
    emit "make:$number"
    number=$((number - 1))
  done
  flush
  echo '@end'
}
