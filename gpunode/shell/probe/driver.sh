# shellcheck shell=sh
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
    printf '%s %s %s %s\n' "${path##*/}" "$version" "$state" "$WORD"
  done
}

driver_marks() {
  [ "$SETTING" = image ] || running_driver_marks
  modprobe_helper
  [ -e "$R/usr/bin/nvidia-uninstall" ] && echo runfile=/usr/bin/nvidia-uninstall
  for path in etc/dgx-release opt/azurehpc opt/deeplearning opt/aws/dlami; do
    [ -e "$R/$path" ] && trusted "/$path" && echo "image=/$path" && break # catalog/images.yaml has their names
  done
  for path in "$R"/etc/eks/nvidia-open-supported-devices*.txt; do # one for each major version of the driver
    [ -e "$path" ] && trusted "${path#"$R"}" && echo image=/etc/eks/nvidia-open-supported-devices && break
  done
  return 0
}

modprobe_helper() { # modprobe=MODE OWNER GROUP, as stat's %f %u %g, from the one stat of `look_up`
  if [ ! -e "$R/usr/bin/nvidia-modprobe" ] && [ ! -h "$R/usr/bin/nvidia-modprobe" ]; then echo modprobe=absent; return 0; fi
  while read -r mode owner group _ path; do
    [ "$path" = "$R/usr/bin/nvidia-modprobe" ] && echo "modprobe=$mode $owner $group" && return 0
  done <"$T/entries"
}

running_driver_marks() {
  managed=
  # NVLink 5 switches are managed through network functions, which are in /sys/class/infiniband only once mlx5_ib is loaded.
  while IFS='|' read -r address vendor class _; do
    case $vendor:$class in 0x15b3:0x02*) path=$R/sys/bus/pci/devices/$address/vpd ;; *) continue ;; esac
    [ -r "$path" ] && grep -aq SW_MNG "$path" && managed=1 && echo "sw_mng=$address"
  done <"$T/pci"
  [ -z "$managed" ] || umad
  # The GPU Operator makes the directory for its toolkit too; a driver container mounts its root there.
  [ -d "$R/run/nvidia/driver/usr" ] && trusted /run/nvidia/driver && echo container=/run/nvidia/driver
  for path in "$R"/proc/driver/nvidia/gpus/*; do
    [ -d "$path" ] && echo "gpu=${path##*/}"
  done
  return 0
}

umad() { # umad=1|0: whether the running kernel has ib_umad, which manages those switches, as a file or built in
  word "$R/proc/sys/kernel/osrelease"
  set -- "$R/lib/modules/$WORD/modules.dep" "$R/lib/modules/$WORD/modules.builtin"
  [ -r "$1" ] || return 0
  if grep -qs '/ib_umad\.ko' "$@"; then echo umad=1; else echo umad=0; fi
}

do_modinfo() {
  find_tool modinfo || return 127
  set -- nvidia nvidia-current nvidia-current-open
  if [ "$SETTING" = image ]; then # by its path: a name stands for the running kernel's, which is not the image's
    path=$(do_nvidia_ko | sort | tail -n 1)
    if [ -n "$path" ]; then set -- "$R$path"; fi
  fi
  for module in "$@"; do
    "$TOOL" "$module" >"$T/modinfo.one" 2>&1 || continue
    sed -n '/^\(filename\|version\|license\|signer\):/p' "$T/modinfo.one" 2>/dev/null
    return 0
  done
  cat "$T/modinfo.one"
  return 1
}

do_ldconfig() { # SONAME REAL_PATH in loader order; those of 64 bits, which is what the GPUs' programs are
  find_tool ldconfig || return 127
  "$TOOL" -p | sed -n -E 's/^[[:space:]]*(libcuda\.so\.1|libnvidia-ml\.so\.1) \(.*(x86-64|AArch64|64bit).*\) => (.*)$/\1 \3/p' >"$T/ldconfig.found"
  while read -r soname path; do
    real=$(readlink -f "$R$path" 2>/dev/null) || real=$path
    printf '%s %s\n' "$soname" "$real"
  done <"$T/ldconfig.found"
}

# Of each kind its newest lines: no kind can push out another, as the errors of a user's programs would those of a GPU,
# or a burst that asks for nothing the one that does.
LOG_KINDS='refused:20 machine:20 hung:20 aer:20 link:100 stack:40 program:20 fallen:20 mild:60 xid:100 gpu:200'
# What stands before a message: nothing, dmesg's "[ 12.3] " and "[ 12.3] [   T77] " of kernels that keep the caller
# (CONFIG_PRINTK_CALLER), or journalctl's "[ 12.3] gpu07 kernel: ".
LOG_STAMP='^(\[ *[0-9]+\.[0-9]+\]( ?\[ *[TC][0-9]+\])? ([^ ]+ kernel: )?)?'
LOG_XID='NVRM: Xid \((PCI:)?[0-9a-fA-F]{4,8}:[^)]*\): '
LOG_SXID='nvidia-nvswitch[0-9]+: SXid [^ ]+ [0-9]+, '

log_lines() { # PREFIX: stdin's lines by their kind, and the first of all
  # Refusals of Secure Boot name no module. Xids of programs are apart from the others: a user can cause many of them.
  # The kernel begins a line with a program's name, of 15 characters, where that program has a fault ("x[77]: segfault
  # at 0 ip ... in FILE[...]"): it and FILE are a user's words. What is looked for before those lines go has more than 15.
  sed -n -E -e "1w $1.first" \
    -e "/${LOG_STAMP}$LOG_XID(13|31|32|43|45|69),/{" -e "w $1.program" -e 'd;}' \
    -e "/${LOG_STAMP}($LOG_XID(63|92|94),|$LOG_XID(14[4-9]|150),.* Non-?fatal |$LOG_SXID(Non-fatal|Severity|Data))/{" \
    -e "w $1.mild" -e 'd;}' \
    -e "/${LOG_STAMP}(NVRM: Xid \\((PCI:)?[0-9a-fA-F]{4,8}:|nvidia-nvswitch[0-9]+: SXid )/{" -e "w $1.xid" -e 'd;}' \
    -e "/${LOG_STAMP}nvidia [0-9a-f:.]{12,16}: .*(PCIe Bus Error|AER): /{" -e "w $1.aer" -e 'd;}' \
    -e "/${LOG_STAMP}(mlx5_core|bnxt_en|ice|ionic) [0-9a-f:.]{12,16}[ :].*([Ll]ink (is )?[Dd]own|Cable unplugged)/{" \
    -e "w $1.link" -e 'd;}' \
    -e "/${LOG_STAMP}(traps: )?.{1,60}\\[[0-9]+\\]:? /d" \
    -e '/Loading of .* is rejected|module loading is restricted/{' -e "w $1.refused" -e 'd;}' \
    -e '/fallen off the bus/{' -e "w $1.fallen" -e 'd;}' \
    -e '/\+0x[0-9a-f]+\/0x[0-9a-f]+ \[nvidia/{' -e "w $1.stack" -e 'd;}' \
    -e '/NVRM|nvidia|nouveau|nova_core/{' -e "w $1.gpu" -e 'd;}' \
    -e '/\[Hardware Error\]|[Mm]achine check|EDAC .* UE /{' -e "w $1.machine" -e 'd;}' \
    -e '/INFO: task .* blocked for more than/{' -e "w $1.hung" -e 'd;}'
}

log_begins() { # PREFIX -> BEGINS, the second after boot of its first line; 0: it has no stamp, as the first minute has
  BEGINS=0
  read -r line 2>/dev/null <"$1.first" || return 0
  case $line in '['*) line=${line#?} ;; *) return 0 ;; esac
  line=${line#"${line%%[! ]*}"}
  line=${line%%.*}
  case $line in '' | *[!0-9]* | ?????????*) ;; *) [ "$line" -lt 60 ] || BEGINS=$line ;; esac
}

do_kernel_log() {
  log=$T/log
  { { find_tool dmesg && "$TOOL" 2>"$T/dmesg.err"; } ||
    { find_tool journalctl && "$TOOL" -k -b -o short-monotonic --no-pager -q; } || : >"$T/dmesg.failed"; } | log_lines "$log"
  if [ -e "$T/dmesg.failed" ]; then
    [ -s "$T/dmesg.err" ] || return 127
    cat "$T/dmesg.err" >&2
    return 1
  fi
  if [ ! -s "$log.first" ]; then echo 'it is empty: cleared, or kept from this container' >&2; return 1; fi
  log_begins "$log"
  if [ "$BEGINS" != 0 ] && find_tool timeout; then # the kernel's memory is full, and its oldest lines are gone: the journal has them
    limit=$TOOL since=$BEGINS
    if find_tool journalctl; then
      "$limit" 5 "$TOOL" -k -b -o short-monotonic --no-pager -q 2>/dev/null | log_lines "$T/journal"
      log_begins "$T/journal"
      if [ -s "$T/journal.first" ] && [ "$BEGINS" -lt "$since" ]; then log=$T/journal; else BEGINS=$since; fi
    fi
  fi
  if [ "$BEGINS" != 0 ]; then echo "begins=$BEGINS"; fi
  for kind in $LOG_KINDS; do
    [ -s "$log.${kind%:*}" ] && tail -n "${kind#*:}" "$log.${kind%:*}"
  done
  return 0
}

kernel_state() { # what the kernel counts since boot and keeps over a crash: all of it read by the shell itself
  word "$R/proc/uptime"; echo "uptime=${WORD%% *}"
  word "$R/proc/sys/kernel/tainted"; echo "taint=$WORD"
  if [ -r "$R/sys/fs/pstore" ]; then echo pstore_read=1; fi
  for path in "$R"/sys/fs/pstore/dmesg-*; do
    [ -e "$path" ] && echo "pstore=${path##*/}"
  done
  for path in "$R"/sys/bus/pci/drivers/nvidia/*:*:*.*; do
    [ -e "$path/aer_dev_fatal" ] || continue
    line="aer=${path##*/}"
    for kind in correctable nonfatal fatal; do total "$path/aer_dev_$kind"; line="$line $TOTAL"; done
    echo "$line"
  done
  for path in "$R"/sys/devices/system/edac/mc/mc[0-9]*; do
    [ -e "$path/ue_count" ] || continue
    word "$path/ce_count"; corrected=$WORD
    word "$path/ue_count"; echo "edac=$corrected $WORD"
  done
  return 0
}

total() { # FILE of AER counters -> TOTAL, the number in its line TOTAL_ERR_...
  TOTAL=-
  while read -r key number; do
    case $key in TOTAL_ERR_*) TOTAL=${number:--} ;; esac
  done <"$1"
}

line_of() { # FILE of /proc that has one
  { IFS= read -r line && printf '%s\n' "$line"; } 2>/dev/null <"$R/proc/$1"
}

proc_devices() { # NUMBER NAME
  while IFS= read -r line; do
    case $line in *nvidia*) printf '%s\n' "$line" ;; esac
  done <"$R/proc/devices"
}

devices() {
  for path in "$R"/dev/nvidia* "$R"/dev/nvidia-caps/*; do
    [ -e "$path" ] && set -- "$@" "$path"
  done
  [ $# -gt 0 ] || return 0
  if [ -n "$R" ]; then ls -lnd "$@" 2>/dev/null | sed "s| $R/| /|"; else ls -lnd "$@" 2>/dev/null; fi
}

dev_char() {
  [ -d "$R/dev/char" ] && ls -l "$R/dev/char" 2>/dev/null | sed -n 's/.* \([0-9]*:[0-9]*\) -> .*nvidia.*/\1/p'
  return 0
}

nvlinks() { # of several GPUs; what they count, and who reaches whom, where there are links
  seen=$(grep -c '<gpu id=' "$T/smi.out") && [ "$seen" -gt 1 ] || return 0
  job smi_links "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi nvlink -s
  emit smi_links
  if grep -q 'Link [0-9]' "$T/smi_links.out" 2>/dev/null; then
    job smi_link_errors "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi nvlink -e
    job smi_p2p "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi topo -p2p r
    emit smi_link_errors
    emit smi_p2p
  fi
}

container_cli() { # what libnvidia-container sees, where the toolkit is: NVML as nvidia-smi asks it, so never after one that hangs
  if [ "$SMI_RC" = 124 ]; then refuse cli_info 'nvidia-smi did not answer'
  else job cli_info "${GPUNODE_SMI_LIMIT_S:-15}" nvidia-container-cli --load-kmods=false info; fi
  emit cli_info
}

smi() {
  word "$R/sys/module/nvidia/initstate"
  if [ "$SETTING" = image ]; then
    say '@ smi unreadable an image is being built'
  elif [ ! -d "$R/sys/module/nvidia" ]; then
    say '@ smi unreadable the nvidia module is not loaded'
  elif [ "$WORD" != live ] && [ "$WORD" != - ]; then
    say "@ smi unreadable the nvidia module is $WORD"
  elif grep -q '|suspended|' "$T/pci"; then
    say '@ smi unreadable a GPU is suspended and would be woken'
  else
    job smi "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi -q -x
    emit smi
    SMI_RC=$RC
    if [ "$RC" = 0 ]; then nvlinks; fi
    # Instances by name stand in the list only.
    if grep -q '<current_mig>Enabled' "$T/smi.out" 2>/dev/null; then
      job smi_list "${GPUNODE_SMI_LIMIT_S:-30}" nvidia-smi -L
      emit smi_list
    fi
    container_cli
  fi
}
