"""Images are built in a chroot or a container: no GPU, no systemd, no reboot, and the machine around is left alone."""

from __future__ import annotations

import shlex
from pathlib import Path

from .host import Host, Result
from .lab import Lab
from .site import ROOT

KERNEL = "6.99.0-1-image"
# An image over this very root, with nothing of the machine in it but its /dev.
MOUNT = f"""
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --bind /dev /mnt/root/dev
mkdir -p /mnt/root/boot /mnt/root/lib/modules/{KERNEL} /mnt/root/usr/src/linux-headers-{KERNEL}
: >/mnt/root/boot/vmlinuz-{KERNEL}
: >/mnt/root/usr/src/linux-headers-{KERNEL}/Makefile
ln -s /usr/src/linux-headers-{KERNEL} /mnt/root/lib/modules/{KERNEL}/build
"""
IMAGE = Path("/mnt/root")
# As docker build, buildah and mkosi run a command: its own process 1, root of its own users, the machine's /sys. The
# machine's /run as well, which is worse than theirs. Only who is root outside can map all users.
BUILD = """
set -e
mount --bind /run /mnt/root/run
mount --rbind /sys /mnt/root/sys
mkfifo /mnt/root/tmp/mapped
cat >/mnt/root/tmp/command <<'END'
read -r _ </tmp/mapped
gpunode "$@"
exit $?
END
unshare --mount --pid --fork --kill-child sh -c '
    mount -t proc proc /mnt/root/proc
    cd /mnt/root
    pivot_root . mnt
    umount --lazy /mnt
    exec unshare --user sh /tmp/command "$@"
' sh WORDS &
while kill -0 $!; do
    command=$(pgrep -P $!) && [ "$(readlink /proc/$command/ns/user)" != "$(readlink /proc/self/ns/user)" ] && break
    sleep 0.1
done
echo 0 0 4294967295 >/proc/$command/uid_map
echo 0 0 4294967295 >/proc/$command/gid_map
echo >/mnt/root/tmp/mapped
wait $! && code=0 || code=$?
rm /mnt/root/tmp/mapped
umount --lazy --recursive /mnt/root/sys /mnt/root/run
exit $code
"""


def build(host: Host, *words: str) -> Result:
    return host.nsrun(BUILD.replace("WORDS", shlex.join(words)))


def test_a_container_build_gets_the_images_kernel_and_nothing_of_the_machines(lab: Lab, gpunode_site: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    host.install_gpunode(ROOT, gpunode_site)
    host.nsrun(MOUNT, check=True)
    state = "systemctl show docker containerd -p MainPID; ls /sys/module; ls /etc/systemd/system/*.wants"
    before = host.nsrun(state, check=True).stdout
    words = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)

    refused = build(host, *words)
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert "an image is being built here" in refused.stderr

    built = build(host, *words, "--allow-no-gpu", "--driver", "595", "--flavour", "open")
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    assert host.nsrun(f"ls {IMAGE}/lib/modules/*/updates/dkms/nvidia.ko").stdout.split() == [
        f"{IMAGE}/lib/modules/{KERNEL}/updates/dkms/nvidia.ko"
    ], said
    assert "nvidia" in host.nsrun(f"cat {IMAGE}/etc/docker/daemon.json").stdout
    assert host.nsrun(f"chroot {IMAGE} systemctl is-enabled nvidia-persistenced").stdout.strip() == "enabled"

    again = build(host, *words, "--allow-no-gpu", "--driver", "595", "--flavour", "open")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "no changes" in again.stdout + again.stderr

    assert host.nsrun(state, check=True).stdout == before
    assert host.nsrun("systemctl list-units --all 'gpunode-*' --no-legend").stdout == ""
    assert not host.exists("/etc/docker/daemon.json")


def test_an_image_without_a_gpu_gets_driver_toolkit_and_runtimes(lab: Lab, gpunode_site: Path) -> None:
    host = lab.host("debian12", gpu="none", runtime="docker")
    host.install_gpunode(ROOT, gpunode_site)
    host.nsrun(f"{MOUNT}\nmount --bind /proc /mnt/root/proc\nmount -t tmpfs tmpfs /mnt/root/run", check=True)
    pids = host.nsrun("systemctl show docker containerd -p MainPID", check=True).stdout
    words = f"setup --yes --allow-no-gpu --driver 595 --flavour open --trust-key {lab.repo_fingerprint}"

    baked = host.nsrun(f"chroot /mnt/root gpunode {words}")

    said = baked.stdout + baked.stderr
    assert baked.returncode == 0, said
    inside = Path("/mnt/root")
    assert host.nsrun(f"ls {inside}/lib/modules/*/updates/dkms/nvidia.ko").stdout.split() == [
        f"{inside}/lib/modules/{KERNEL}/updates/dkms/nvidia.ko"
    ], said
    installed = host.nsrun(
        f"chroot {inside} dpkg-query -W -f '${{Package}} ' nvidia-open nvidia-container-toolkit"
    ).stdout
    assert installed.split() == ["nvidia-container-toolkit", "nvidia-open"]
    assert "nvidia" in host.nsrun(f"cat {inside}/etc/docker/daemon.json {inside}/etc/containerd/config.toml").stdout
    assert host.nsrun(f"chroot {inside} systemctl is-enabled nvidia-persistenced").stdout.strip() == "enabled"

    again = host.nsrun(f"chroot /mnt/root gpunode {words}")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "no changes" in again.stdout + again.stderr

    assert host.nsrun("systemctl show docker containerd -p MainPID").stdout == pids
    assert not host.exists("/etc/docker/daemon.json")
    assert host.nsrun("dpkg-query -W nvidia-open").returncode != 0
