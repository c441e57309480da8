# shellcheck shell=sh
# The kernels that are here and the one that boots next, their modules, headers and signatures.

kernel_trees() { # RELEASE|BOOTABLE|HEADERS
  for tree in "$R"/lib/modules/*; do
    [ -d "$tree" ] || continue
    release=${tree##*/}
    bootable=0 headers=0
    if [ -e "$R/boot/vmlinuz-$release" ] || [ -e "$tree/vmlinuz" ]; then bootable=1; fi
    build=$tree/build
    if [ -n "$R" ] && [ -h "$build" ]; then # an absolute link inside a fake root
      build=$(readlink "$build")
      case $build in /*) build=$R$build ;; *) build=$tree/$build ;; esac
    fi
    [ -f "$build/Makefile" ] && headers=1
    printf '%s|%s|%s\n' "$release" "$bootable" "$headers"
  done
}

do_nvidia_ko() {
  [ -d "$R/lib/modules" ] || return 0
  unrooted find "$R/lib/modules/" \( -name 'nvidia.ko*' -o -name 'nvidia-current.ko*' -o -name 'nvidia-current-open.ko*' \
    -o -name 'nvidia-tesla*.ko*' \) 2>/dev/null
}

next_boot() {
  for path in vmlinuz boot/vmlinuz; do
    [ -h "$R/$path" ] && printf 'vmlinuz=%s\n' "$(readlink "$R/$path")" && break
  done
  for path in boot/grub2/grubenv boot/grub/grubenv; do
    [ -r "$R/$path" ] && grep -a '^saved_entry=' "$R/$path" && break
  done
  [ -r "$R/etc/default/grub" ] && grep '^GRUB_DEFAULT=' "$R/etc/default/grub"
  return 0
}

blacklist() { # PATH:LINE
  for path in "$R"/etc/modprobe.d/*.conf "$R"/run/modprobe.d/*.conf "$R"/usr/lib/modprobe.d/*.conf "$R"/lib/modprobe.d/*.conf; do
    [ -r "$path" ] || continue
    set -- "$@" "$path"
  done
  [ $# -gt 0 ] && unrooted grep -HE '^[[:space:]]*(blacklist|install|options)[[:space:]]+(nouveau|nova|nvidia)' "$@"
  return 0
}

mok_enrolled() { # of the certificate that DKMS signs with: Ubuntu's place, then DKMS's own
  find_tool mokutil || return 0
  for certificate in "$R/var/lib/shim-signed/mok/MOK.der" "$R/var/lib/dkms/mok.pub"; do
    [ -r "$certificate" ] || continue
    case $("$TOOL" --test-key "$certificate" 2>/dev/null) in # mokutil(1); its exit codes differ between versions
      *'already enrolled'*) echo mok_enrolled=1 ;;
      *'enrollment request'*) echo mok_pending=1 ;;
      *'not enrolled'*) echo mok_enrolled=0 ;;
    esac
    return 0
  done
  return 0
}

security() {
  if [ -d "$R/sys/firmware/efi" ]; then echo uefi=1; else echo uefi=0; fi
  path=$R/sys/firmware/efi/efivars
  if [ -r "$path/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c" ]; then # four bytes of attributes, then the value
    secure=$(od -An -tu1 -j4 -N1 "$path/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c" | tr -d ' \n')
    echo "secure_boot=$secure"
    [ "$secure" != 1 ] || mok_enrolled
  fi
  [ -e "$path/MokNew-605dab50-e046-4300-abb6-3dd810dd8b23" ] && echo mok_pending=1
  word "$R/sys/kernel/security/lockdown"; [ "$WORD" != - ] && echo "lockdown=$WORD"
  word "$R/sys/fs/selinux/enforce"; echo "selinux=$WORD"
  word "$R/sys/fs/selinux/booleans/container_use_devices"; [ "$WORD" = - ] || echo "selinux_devices=$WORD"
}
