#!/bin/sh
# outer.sh MACHINE COMMAND...: COMMAND in a chroot of the small machine whose root is mounted on MACHINE/root, so that whoever
# leaves the chroot is on that machine and not on this one (test_containment.py).
#
# The chroot is this machine's root, with everything written to it kept in MACHINE/inner; $BINDS names what lies on other file
# systems, and the lab's cache is a tmpfs, since the upper of a host's overlay cannot be on an overlay. Runs in mount and pid
# namespaces of its own (unshare --mount --pid --fork).
set -eu
machine=$1
shift
repository=$PWD
inner=$machine/root/inner
mkdir -p "$inner" "$machine/inner/upper" "$machine/inner/work"
mount -t overlay outer-lab -o "lowerdir=/,upperdir=$machine/inner/upper,workdir=$machine/inner/work" "$inner"
mkdir -p "$inner$GPUNODE_LAB"
mount -t tmpfs -o size=512M tmpfs "$inner$GPUNODE_LAB"
for shared in trust repos site; do
  [ ! -e "$GPUNODE_LAB/$shared" ] || cp -a "$GPUNODE_LAB/$shared" "$inner$GPUNODE_LAB/"
done
for path in $BINDS "$GPUNODE_LAB/base"; do
  mkdir -p "$inner$path"
  mount --bind "$path" "$inner$path"
  mount -o remount,bind,ro "$inner$path"
done
mount -t tmpfs -o size=64M tmpfs "$inner/run"
mount -t proc proc "$inner/proc"
mount --rbind /sys "$inner/sys"
mount --rbind /dev "$inner/dev"
mount -t proc proc "$machine/root/proc"
cd "$machine/root"
mkdir -p .old
# Refused in a chroot that lies in a shared mount (pivot_root(2)): then there is no machine around to be made.
pivot_root . .old || exit 77
umount -l /.old # from here on this machine has no path in this namespace but through the chroot
# shellcheck disable=SC2016  # expands in there
exec chroot /inner sh -c 'cd "$1" && shift && exec "$@"' outer "$repository" "$@"
