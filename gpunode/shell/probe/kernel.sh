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
    -o -name 'nvidia-tesla*.ko*' \) 2>/dev/null | not_dangling
}

not_dangling() { # of the paths that are read those that lead to a file: one in weak-updates may outlive the module of its kernel
  while IFS= read -r path; do
    if [ -h "$R$path" ]; then
      leads=$(readlink "$R$path")
      case $leads in /*) ;; *) leads=${path%/*}/$leads ;; esac
      [ -e "$R$leads" ] || continue
    fi
    printf '%s\n' "$path"
  done
}

next_boot() {
  for path in vmlinuz boot/vmlinuz; do
    [ -h "$R/$path" ] && printf 'vmlinuz=%s\n' "$(readlink "$R/$path")" && break
  done
  for path in boot/grub2/grubenv boot/grub/grubenv; do
    [ -r "$R/$path" ] && grep -aE '^(saved|next)_entry=' "$R/$path" && break
  done
  grep -h '^GRUB_DEFAULT=' "$R/etc/default/grub" "$R"/etc/default/grub.d/*.cfg # the second are sourced after it
  return 0
}

blacklist() { # PATH:LINE; of files with one name that of the first directory is in force, as modprobe.d(5) has it
  seen=/
  for path in "$R"/etc/modprobe.d/*.conf "$R"/run/modprobe.d/*.conf "$R"/usr/lib/modprobe.d/*.conf "$R"/lib/modprobe.d/*.conf; do
    [ -r "$path" ] || continue
    case $seen in *"/${path##*/}/"*) continue ;; esac
    seen=$seen${path##*/}/
    set -- "$@" "$path"
  done
  [ $# -gt 0 ] && unrooted grep -HE '^[[:space:]]*(blacklist|install|options|alias)[[:space:]]+(nouveau|nova|nvidia)' "$@"
  return 0
}

framework_key() { # -> MOK_KEY and MOK_CERTIFICATE, as framework.conf(.d) names what DKMS signs with; "" where it does not, "?": it is not understood
  # DKMS sources these files, the last one wins; here they are data. $kernelver may stand in a path.
  MOK_KEY='' MOK_CERTIFICATE=''
  for path in "$R/etc/dkms/framework.conf" "$R"/etc/dkms/framework.conf.d/*.conf; do
    [ -e "$path" ] || continue
    if ! trusted "${path#"$R"}" || ! head -c "$FILE_LIMIT" "$path" >"$T/framework" 2>/dev/null; then
      MOK_KEY='?' MOK_CERTIFICATE='?'
      continue
    fi
    while IFS= read -r line || [ -n "$line" ]; do
      line=${line#"${line%%[![:blank:]]*}"}
      case $line in
        '#'*) ;;
        mok_signing_key=*) path_of "${line#*=}"; MOK_KEY=$VALUE ;;
        mok_certificate=*) path_of "${line#*=}"; MOK_CERTIFICATE=$VALUE ;;
        *mok_signing_key* | *mok_certificate*) MOK_KEY='?' ;;
      esac
    done <"$T/framework"
  done
}

path_of() { # the right side of an assignment in a shell script -> VALUE: a path in a directory of root's, ""; else "?"
  VALUE=${1%"${1##*[![:space:]]}"} # with its blanks, and the \r that DKMS takes away
  case $VALUE in \"*\" | \'*\') VALUE=${VALUE#?} VALUE=${VALUE%?} ;; esac
  case $VALUE in
    '') ;;
    *[!A-Za-z0-9/._+-]*) VALUE='?' ;;
    /*) trusted "${VALUE%/*}" || VALUE='?' ;;
    *) VALUE='?' ;;
  esac
}

mok_enrolled() { # of the certificate that DKMS signs with: framework.conf's, else Ubuntu's place, then DKMS's own
  framework_key
  if [ -n "$MOK_KEY" ]; then printf 'mok_key=%s\n' "$MOK_KEY"; fi
  if [ -n "$MOK_CERTIFICATE" ]; then printf 'mok_certificate=%s\n' "$MOK_CERTIFICATE"; fi
  case $MOK_KEY$MOK_CERTIFICATE in *'?'*) return 0 ;; esac
  find_tool mokutil || return 0
  set -- "$R${MOK_CERTIFICATE:-/var/lib/dkms/mok.pub}"
  if [ -z "$MOK_KEY" ]; then set -- "$R/var/lib/shim-signed/mok/MOK.der" "$@"; fi
  for certificate in "$@"; do
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
