# shellcheck shell=sh disable=SC2010
# (ls: of descriptors only numbers are taken.)
# The driver: its module, libraries, device nodes, messages, and nvidia-smi.

modules() {
  for path in "$R"/sys/module/*/initstate; do
    [ -e "$path" ] || continue
    path=${path%/initstate}
    echo "${path##*/}"
  done
}

driver_modules() { # NAME VERSION INITSTATE REFCNT
  for path in "$R"/sys/module/nvidia*; do
    [ -d "$path" ] || continue
    word "$path/version"; version=$WORD
    word "$path/initstate"; state=$WORD
    word "$path/refcnt"
    echo "${path##*/} $version $state $WORD"
  done
}

driver_marks() {
  for path in "$R"/sys/class/infiniband/*/device/vpd; do # NVLink 5 switches are managed through network functions
    [ -r "$path" ] && grep -aq SW_MNG "$path" && path=$(readlink -f "${path%/vpd}") && echo "sw_mng=${path##*/}"
  done
  [ -e "$R/usr/bin/nvidia-uninstall" ] && echo runfile=/usr/bin/nvidia-uninstall
  [ -d "$R/run/nvidia/driver" ] && trusted /run/nvidia/driver && echo container=/run/nvidia/driver
  for path in etc/dgx-release opt/azurehpc opt/deeplearning opt/aws/dlami etc/eks/nvidia-open-supported-devices.txt; do
    [ -e "$R/$path" ] && trusted "/$path" && echo "image=/$path" && break # catalog/images.yaml has their names
  done
  for path in "$R"/proc/driver/nvidia/gpus/*; do
    [ -d "$path" ] && echo "gpu=${path##*/}"
  done
  return 0
}

do_modinfo() {
  find_tool modinfo || return 127
  for module in nvidia nvidia-current nvidia-current-open; do
    "$TOOL" "$module" >"$T/modinfo.one" 2>&1 || continue
    sed -n '/^\(filename\|version\|license\|signer\):/p' "$T/modinfo.one" 2>/dev/null
    return 0
  done
  cat "$T/modinfo.one"
  return 1
}

do_ldconfig() { # SONAME REAL_PATH in loader order
  find_tool ldconfig || return 127
  "$TOOL" -p | sed -n 's/^[[:space:]]*\(libcuda\.so\.1\|libnvidia-ml\.so\.1\) .*=> \(.*\)$/\1 \2/p' |
    while read -r soname path; do
      echo "$soname $(readlink -f "$R$path" 2>/dev/null || echo "$path")"
    done
}

do_busy() { # PID COMMAND of processes that hold /dev/nvidia*
  # The fd directories' listings have "PATH -> /dev/nvidia0"; a path line "/proc/PID/fd:" comes before its entries.
  ls -l "$R"/proc/[0-9]*/fd 2>/dev/null | sed -n -e '/^\/.*\/fd:$/{s/\/fd:$//;s/.*\///;h;}' -e '/-> \/dev\/nvidia/{g;p;}' |
    sort -un | while read -r pid; do
    # The name of an open file may hold line breaks and imitate all of that: each process is checked by itself.
    case $pid in *[!0-9]* | '') continue ;; esac
    ls -l "$R/proc/$pid/fd" 2>/dev/null | grep -q -e '-> /dev/nvidia' || continue
    word "$R/proc/$pid/comm"
    echo "$pid $WORD"
  done
}

do_kernel_log() {
  { { find_tool dmesg && "$TOOL" 2>"$T/dmesg.err"; } ||
    { find_tool journalctl && "$TOOL" -k -b -o short-monotonic --no-pager -q; } || echo "@failed"; } >"$T/dmesg"
  if grep -qx '@failed' "$T/dmesg"; then
    [ -s "$T/dmesg.err" ] || return 127
    cat "$T/dmesg.err" >&2
    return 1
  fi
  grep -aE 'NVRM|nvidia|nouveau|nova_core' "$T/dmesg" | tail -n 200
  return 0
}

devices() {
  for path in "$R"/dev/nvidia* "$R"/dev/nvidia-caps/*; do
    [ -e "$path" ] && set -- "$@" "$path"
  done
  [ $# -gt 0 ] && ls -lnd "$@" 2>/dev/null | sed "s| $R/| /|"
  return 0
}

dev_char() {
  [ -d "$R/dev/char" ] && ls -l "$R/dev/char" 2>/dev/null | sed -n 's/.* \([0-9]*:[0-9]*\) -> .*nvidia.*/\1/p'
  return 0
}

smi() {
  word "$R/sys/module/nvidia/initstate"
  if [ ! -d "$R/sys/module/nvidia" ]; then
    printf '@ smi unreadable the nvidia module is not loaded\n'
  elif [ "$WORD" != live ] && [ "$WORD" != - ]; then
    printf '@ smi unreadable the nvidia module is %s\n' "$WORD"
  elif grep -q '|suspended|' "$T/pci"; then
    printf '@ smi unreadable a GPU is suspended and would be woken\n'
  else
    job smi "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi -q -x
    emit smi
    # Instances by name stand in the list only.
    if grep -q '<current_mig>Enabled' "$T/smi.out" 2>/dev/null; then
      job smi_list "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi -L
      emit smi_list
    fi
  fi
}
