#!/bin/sh
# trial.sh deb|rpm PACKAGE EXAMPLES LAYER...: installs a package in a root made of these overlay layers (the last one is the
# lowest), uses it as root and as another user, removes it, and looks for what is left. In a mount namespace of its own:
#   unshare --mount --pid --net --fork --kill-child sh packaging/trial.sh ...
# The layers are the lab's images of Debian. An rpm is installed by rpm there, whose database knows no python3: --nodeps.
set -eu
kind=$1 package=$2 examples=$3
shift 3
layers=$1
shift
for layer; do layers=$layers:$layer; done
home=$(mktemp -d)
mount -t tmpfs tmpfs "$home"
trap 'umount -R "$home/root" || :; umount "$home"; rmdir "$home"' EXIT
mkdir "$home/upper" "$home/work" "$home/root"
mount -t overlay overlay -o "lowerdir=$layers,upperdir=$home/upper,workdir=$home/work" "$home/root"
mount -t proc proc "$home/root/proc"
mount --bind /dev/null "$home/root/dev/null" 2>/dev/null || { : >"$home/root/dev/null"; mount --bind /dev/null "$home/root/dev/null"; }
cp "$package" "$home/root/root/package"
cp -r "$examples" "$home/root/root/examples"
chmod -R a+rX "$home/root/root"
chmod a+x "$home/root/root"

inside() { chroot "$home/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
files() { (cd "$home/root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./usr/lib/sysimage/rpm -o -path ./var/log -o -path ./var/cache \) -prune -o -print | sort); }
say() { echo "$package: $*"; }

install_rpm() { inside rpm -U --nodeps "$@" /root/package; }
verify_deb() { inside dpkg --verify gpunode; }
verify_rpm() { inside rpm -V --nodeps gpunode; }
remove_deb() { inside dpkg -r gpunode; }
remove_rpm() { inside rpm -e gpunode; }
known_deb() { inside dpkg-query -W gpunode; }
known_rpm() { inside rpm -q gpunode; }

# The lab's images are without manual pages and documentation, and told dpkg so; a host is not. And an rpm's
# manual pages and licences lie in directories of EL's package "filesystem".
install_deb() { inside dpkg --path-include='/usr/share/man/*' --path-include='/usr/share/doc/*' -i /root/package; }
prepare_deb() { :; }
prepare_rpm() { inside mkdir -p /usr/share/man/man1 /usr/share/licenses && inside rpm --initdb; }

"prepare_$kind"
files >"$home/before"
"install_$kind" >/dev/null
say "$(inside gpunode --version), $(inside python3 --version)"
inside gpunode self check
inside gpunode plan --recorded /root/examples/ubuntu2404-hgx-h100 >/dev/null
inside gpunode check --recorded /root/examples/debian12-ready >/dev/null
inside gpunode check --unit service | grep -q '^ExecStart="/usr/bin/gpunode" "check"'
"verify_$kind"
"known_$kind" >/dev/null
# Another user has a gpunode as quick as root's, and writes nothing.
inside setpriv --reuid=65534 --regid=65534 --clear-groups gpunode catalog gpus >/dev/null
inside gunzip -c /usr/share/man/man1/gpunode-check.1.gz | grep -q '^.TH GPUNODE-CHECK 1 '
# Somebody changes a file, and somebody adds one.
echo '# changed' >>"$home/root/usr/lib/gpunode/lib/gpunode/errors.py"
echo 'import os' >"$home/root/usr/lib/gpunode/lib/added.py"
if inside gpunode self check >"$home/said"; then say "self check saw no difference" && exit 1; else [ $? = 1 ]; fi
grep -q '^gpunode/errors.py *changed$' "$home/said"
grep -q '^added.py *not of the release$' "$home/said"
rm "$home/root/usr/lib/gpunode/lib/added.py"
case $kind in deb) "install_$kind" ;; rpm) install_rpm --force ;; esac >/dev/null
inside gpunode self check >/dev/null
"remove_$kind" >/dev/null
[ "$kind" = rpm ] || inside dpkg -P gpunode >/dev/null 2>&1
if "known_$kind" >/dev/null 2>&1; then say "is still known" && exit 1; fi
files >"$home/after"
diff "$home/before" "$home/after" || { say "was not removed whole" && exit 1; }
say "installed, used, changed, repaired, removed: nothing is left"
