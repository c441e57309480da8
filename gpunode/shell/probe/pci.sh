# shellcheck shell=sh
# The bus, from sysfs, since minimal images have no lspci.

pci() {
  for dev in "$R"/sys/bus/pci/devices/*; do
    word "$dev/vendor"; vendor=$WORD
    word "$dev/class"; class=$WORD
    case $vendor:$class in 0x10de:* | 0x15b3:* | *:0x0207*) ;; *) continue ;; esac
    printf '%s|%s|%s' "${dev##*/}" "$vendor" "$class"
    for attr in device subsystem_vendor subsystem_device current_link_width max_link_width \
      current_link_speed max_link_speed numa_node power/runtime_status; do
      word "$dev/$attr"
      printf '|%s' "$WORD"
    done
    driver=-
    [ -h "$dev/driver" ] && driver=$(readlink "$dev/driver") && driver=${driver##*/}
    head=$(od -An -tx1 -N4 "$dev/config" 2>/dev/null | tr -d ' \n')
    { read -r _ && read -r bar1; } 2>/dev/null <"$dev/resource" || bar1=
    printf '|%s|%s|%s\n' "${driver:--}" "${head:--}" "${bar1:--}"
  done
}
