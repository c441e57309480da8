# shellcheck shell=sh
# The bus, from sysfs, since minimal images have no lspci.

pci() {
  bytes=4 # of a function's config space; in a virtual machine the capabilities tell whether a GPU is a vGPU
  if [ -n "$VIRTUAL" ]; then bytes=256; fi
  for dev in "$R"/sys/bus/pci/devices/*; do
    word "$dev/vendor"; vendor=$WORD
    word "$dev/class"; class=$WORD
    kind=$vendor:$class
    case $kind in 0x1d0f:0x02*) word "$dev/device"; kind=efa:$WORD ;; esac # of Amazon's network functions the EFA alone
    case $kind in 0x10de:* | 0x15b3:* | *:0x0207* | efa:0xefa*) ;; *) continue ;; esac
    printf '%s|%s|%s' "${dev##*/}" "$vendor" "$class"
    for attr in device subsystem_vendor subsystem_device current_link_width max_link_width \
      current_link_speed max_link_speed numa_node power/runtime_status; do
      word "$dev/$attr"
      printf '|%s' "$WORD"
    done
    driver=-
    [ -h "$dev/driver" ] && driver=$(readlink "$dev/driver") && driver=${driver##*/}
    head=$(od -An -v -tx1 -N"$bytes" "$dev/config" 2>/dev/null | tr -d ' \n')
    # All of it where it may have the capability that a vGPU has: 09, next, length, "VF" (facts/vgpu.py walks the list).
    case $head in *09????5646*) ;; *) head=${head%"${head#????????}"} ;; esac
    { read -r _ && read -r bar1; } 2>/dev/null <"$dev/resource" || bar1=
    printf '|%s|%s|%s\n' "${driver:--}" "${head:--}" "${bar1:--}"
  done
}
