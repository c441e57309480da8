#!/bin/bash
# build.sh SUITE...: the images that lab hosts start from, built once and kept.
#
#   $GPUNODE_LAB/base/SUITE         a Debian with systemd, sshd, sudo, python3: the lowest overlay layer of every host
#   $GPUNODE_LAB/base/SUITE-docker  the overlay layer on top of it: docker.io, containerd, runc (nothing enabled)
#   $GPUNODE_LAB/base/SUITE-podman  another layer on top of it, for the suites in PODMAN: podman, crun and runc
#   $GPUNODE_LAB/base/SUITE-rootless  a layer on top of SUITE-docker, for the suites in ROOTLESS: what a user's own dockerd needs
#   $GPUNODE_LAB/base/SUITE-2026  another on SUITE-docker, for the suites in Y2026: sudo-rs, uutils' coreutils and dracut in use
#   $GPUNODE_LAB/base/SUITE-doas  another on SUITE-docker, for the suites in DOAS: doas, and no sudo
#   $GPUNODE_LAB/base/SUITE-cloud  another on SUITE-docker, for every suite: cloud-init
#   $GPUNODE_LAB/base/SUITE-mkosi  another on SUITE-docker, for every suite: mkosi
#   $GPUNODE_LAB/base/SUITE-managers  another one, for the suites in MANAGERS: dnf 4, dnf5, zypper, pacman and rpm
#
# A directory with a `.done` that holds RECIPE is complete and is left alone. Packages come from the Debian mirror
# that this machine uses by default. Needs root; installs the tools it lacks through apt, and says so.
set -euo pipefail

RECIPE=1   # raise it when a change below must reach images that were built before
LAB=${GPUNODE_LAB:-/var/cache/gpunode-lab}
HERE=$(cd "$(dirname "$0")" && pwd)
TOOLS="systemd-container mmdebstrap iproute2 iptables openssh-client openssl gnupg apt-utils busybox-static pciutils util-linux e2fsprogs rpm createrepo-c"
PACKAGES=systemd,systemd-sysv,libpam-systemd,dbus,openssh-server,sudo,python3,iproute2,iputils-ping,iptables,kmod,pciutils
PACKAGES+=,procps,ca-certificates,gnupg,curl,e2fsprogs,less,zsh,fish
PODMAN="trixie"   # podman 5
MANAGERS="sid"    # the only one with dnf5
ROOTLESS="trixie"
Y2026="trixie sid"   # sudo-rs 0.2.5 and 0.2.15, uutils 0.0.30 and 0.12, dracut 106 and 112; apt 3 with sqv is in the bases
DOAS="trixie"
# Nothing that a throw-away host needs at boot; each costs start time or reaches for hardware that is not there.
MASKED="getty.target console-getty.service systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer
dpkg-db-backup.timer e2scrub_all.timer fstrim.timer systemd-timesyncd.service systemd-resolved.service networking.service
systemd-udevd.service systemd-udev-trigger.service"

is_done() { [ "$(cat "$1/.done" 2>/dev/null)" = "$RECIPE" ]; }

install_tools() {
  local missing=
  for tool in $TOOLS; do
    dpkg-query -W -f='${db:Status-Status}\n' "$tool" 2>/dev/null | grep -qx installed || missing+=" $tool"
  done
  [ -n "$missing" ] || return 0
  echo "lab images: installing on this machine:$missing"
  # shellcheck disable=SC2086  # a list of names
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

add_users() {  # admin: sudo without a password; operator: sudo asks for "secret"; nosudo: neither
  local root=$1
  for user in admin operator nosudo; do
    chroot "$root" useradd -m -N -s /bin/bash "$user"   # -N: Debian has a group called operator already
  done
  echo 'admin ALL=(ALL) NOPASSWD:ALL' >"$root/etc/sudoers.d/90-admin"
  echo 'operator ALL=(ALL) ALL' >"$root/etc/sudoers.d/90-operator"
  chmod 440 "$root"/etc/sudoers.d/90-*
  printf '%s\n' root:root admin:secret operator:secret nosudo:secret | chroot "$root" chpasswd
}

build_base() {
  local suite=$1 root=$LAB/base/$1 started=$SECONDS
  is_done "$root" && return 0
  rm -rf --one-file-system "$root" "$root.new"
  # Check-Valid-Until: a frozen mirror of sid has an expired Release file.
  mmdebstrap --variant=important --include="$PACKAGES" \
    --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$suite" "$root.new" >"$LAB/log/base-$suite.log" 2>&1
  : >"$root.new/etc/machine-id"   # every host makes its own
  : >"$root.new/etc/fstab"
  rm -f "$root.new"/etc/ssh/ssh_host_*
  chroot "$root.new" ssh-keygen -A >/dev/null   # here, not at first boot: hosts start in half a second
  install -d -m700 "$root.new/root/.ssh"
  add_users "$root.new"
  for unit in $MASKED; do ln -sf /dev/null "$root.new/etc/systemd/system/$unit"; done
  cp "$HERE/lab-net.service" "$root.new/etc/systemd/system/"
  chroot "$root.new" systemctl enable lab-net.service >/dev/null 2>&1
  echo "$RECIPE" >"$root.new/.done"
  mv "$root.new" "$root"
  echo "lab images: $suite $((SECONDS - started)) s, $(du -sh "$root" | cut -f1)"
}

begin_install() {  # runs in a mounted overlay; starts nothing (policy-rc.d)
  local root=$1
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
  chroot "$root" apt-get -q -o Acquire::Check-Valid-Until=false update
}

end_install() {
  chroot "$1" apt-get clean
  rm -rf "$1/usr/sbin/policy-rc.d" "$1"/var/lib/apt/lists/*
}

install_docker() {
  local root=$1
  begin_install "$root"
  local client=   # split off docker.io in trixie
  [ -z "$(chroot "$root" apt-cache madison docker-cli)" ] || client=docker-cli
  DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -q -y --no-install-recommends install docker.io containerd runc $client
  chroot "$root" systemctl disable docker.service docker.socket containerd.service || true
  end_install "$root"
}

install_podman() {
  begin_install "$1"
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install podman crun runc
  chroot "$1" sh -c 'cd /lib/systemd/system && systemctl disable podman*.service podman*.timer podman*.socket' || true
  end_install "$1"
}

install_rootless() {
  begin_install "$1"
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install \
    rootlesskit slirp4netns uidmap dbus-user-session
  end_install "$1"
}

install_2026() {  # the classic tools stay installed, for what depends on them; their names in /usr/bin are the new ones
  local root=$1 tool new
  begin_install "$root"
  DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -q -y --no-install-recommends install sudo-rs rust-coreutils dracut
  chroot "$root" dpkg-query -W apt sqv sudo-rs rust-coreutils dracut
  new=$(chroot "$root" coreutils --list)  # not piped into grep -q, which leaves early: with pipefail, what it found is then not found
  for tool in $(chroot "$root" dpkg -L coreutils | sed -n 's,^/usr/bin/,,p'); do
    ! grep -qxF "$tool" <<<"$new" || ln -sf coreutils "$root/usr/bin/$tool"
  done
  ln -sf /usr/lib/cargo/bin/sudo "$root/usr/bin/sudo"
  end_install "$root"
}

install_doas() {
  begin_install "$1"
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install opendoas sudo-
  printf 'permit nopass admin\npermit operator\n' >"$1/etc/doas.conf"
  end_install "$1"
}

install_cloud() {   # without a seed its generator leaves it out of the boot
  begin_install "$1"
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install cloud-init
  end_install "$1"
}

install_mkosi() {   # without --no-install-recommends it brings qemu and every package manager
  begin_install "$1"
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install mkosi
  end_install "$1"
}

install_managers() {
  begin_install "$1"
  DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install \
    dnf dnf-plugins-core dnf5 zypper rpm pacman-package-manager
  end_install "$1"
}

build_layer() (   # SUITE NAME [BELOW]: on top of SUITE, or of SUITE-BELOW on it; a subshell, so the trap is its own
  suite=$1 layer=$LAB/base/$1-$2 started=$SECONDS lower=${3:+$LAB/base/$1-$3:}$LAB/base/$1
  is_done "$layer" && exit 0
  rm -rf --one-file-system "$layer" "$layer.work" "$layer.root"
  mkdir -p "$layer" "$layer.work" "$layer.root"
  trap 'umount -R "$layer.root" 2>/dev/null || true; rm -rf --one-file-system "$layer.work" "$layer.root"' EXIT
  mount -t overlay gpunode-lab-build -o "lowerdir=$lower,upperdir=$layer,workdir=$layer.work" "$layer.root"
  mount -t proc proc "$layer.root/proc"
  "install_$2" "$layer.root" >"$LAB/log/$2-$suite.log" 2>&1
  umount -R "$layer.root"
  echo "$RECIPE" >"$layer/.done"
  echo "lab images: $suite-$2 $((SECONDS - started)) s, $(du -sh "$layer" | cut -f1)"
)

[ "$(id -u)" = 0 ] || { echo "lab images: build.sh must run as root" >&2; exit 1; }
mkdir -p "$LAB/base" "$LAB/log"
exec 8>"$LAB/base/.tools.lock"; flock 8; install_tools; flock -u 8
for suite in "${@:-bookworm}"; do
  exec 9>"$LAB/base/.$suite.lock"   # two builds of one suite would tread on each other
  flock 9
  build_base "$suite"
  build_layer "$suite" docker
  build_layer "$suite" cloud docker
  build_layer "$suite" mkosi docker
  case " $PODMAN " in *" $suite "*) build_layer "$suite" podman ;; esac
  case " $ROOTLESS " in *" $suite "*) build_layer "$suite" rootless docker ;; esac
  case " $Y2026 " in *" $suite "*) build_layer "$suite" 2026 docker ;; esac
  case " $DOAS " in *" $suite "*) build_layer "$suite" doas docker ;; esac
  case " $MANAGERS " in *" $suite "*) build_layer "$suite" managers ;; esac
  flock -u 9
done
