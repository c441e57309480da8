# shellcheck shell=sh disable=SC3013
# dracut: what it is told about drivers, its images, and what is in one. `-nt` is not POSIX; dash, bash and busybox have it.

dracut_conf() { # PATH:LINE
  find_tool dracut || return 1
  for path in "$R"/etc/dracut.conf "$R"/usr/lib/dracut/dracut.conf.d/*.conf "$R"/etc/dracut.conf.d/*.conf; do
    [ -f "$path" ] && [ -r "$path" ] && set -- "$@" "$path"
  done
  [ $# -gt 0 ] && unrooted grep -HE '^[[:space:]]*(omit|add|force)_drivers[+]?=' "$@"
  return 0
}

image_of() { # RELEASE -> IMAGE, where distributions and systemd-boot have it
  for IMAGE in "$R/boot/initrd.img-$1" "$R/boot/initramfs-$1.img" "$R/boot/initrd-$1" \
    "$R"/boot/*/"$1/initrd" "$R"/efi/*/"$1/initrd" "$R"/boot/efi/*/"$1/initrd"; do
    [ -f "$IMAGE" ] && return 0
  done
  return 1
}

initramfs_images() { # RELEASE|PATH|WHAT: what is newer than it: configuration that omits its modules, an nvidia module
  sed -n "s|^|$R|; s/:[[:space:]]*omit_drivers.*\(nvidia\|nouveau\).*//p" "$T/dracut" | sort -u >"$T/omitting"
  for tree in "$R"/lib/modules/*; do
    image_of "${tree##*/}" || continue
    newer=
    while read -r path; do [ "$path" -nt "$IMAGE" ] && newer=' configuration' && break; done <"$T/omitting"
    for module in "$tree"/updates/dkms/nvidia*.ko* "$tree"/extra/nvidia*.ko* "$tree"/extra/*/nvidia*.ko* \
      "$tree"/updates/nvidia*.ko* "$tree"/kernel/drivers/video/nvidia*.ko* "$tree"/kernel/nvidia*/nvidia*.ko*; do
      [ -f "$module" ] && [ "$module" -nt "$IMAGE" ] && newer="$newer module" && break
    done
    printf '%s|%s|%s\n' "${tree##*/}" "${IMAGE#"$R"}" "${newer# }"
  done
}

kept_out() { # MODULE: dracut is told to omit it, by that name
  grep -qE "_drivers[+]?=.*[\" ']$1[\" ']" "$T/dracut" && ! grep -E '(add|force)_drivers' "$T/dracut" | grep -qE "[\" ']$1[\" ']"
}

doubtful() { # whether it must be looked into an image: that takes a second or more, so not where the configuration is proof
  kept_out nvidia || return 0
  grep -qE '(rd\.driver|modprobe|module)[._]blacklist=[^ ]*nouveau' "$R/proc/cmdline" || kept_out nouveau || return 0
  grep -q '|.*configuration' "$T/initramfs_images"
}

do_initramfs() { # PATH:FILE of modules and modprobe.d in the image that was booted: 0.5 to 4 s, by its size
  word "$R/proc/sys/kernel/osrelease"
  image_of "$WORD" || return 0
  find_tool lsinitrd || return 0
  "$TOOL" "$IMAGE" | sed -nE "s,^.* ((usr/)?(lib|etc)/(modprobe\.d/[^ ]*\.conf|modules/[^ ]*/(nouveau|nova[_-]core|nvidia)\.ko[.a-z0-9]*)).*,${IMAGE#"$R"}:\1,p"
}
