"""An image is baked in a chroot: no GPU, no systemd, no reboot, and the machine underneath is left alone."""

from __future__ import annotations

from pathlib import Path

from .lab import Lab
from .site import ROOT

KERNEL = "6.99.0-1-image"
# An image over this very root, with nothing of the machine in it but its /proc, as image builders mount it.
MOUNT = f"""
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --bind /proc /mnt/root/proc
mount --bind /dev /mnt/root/dev
mount -t tmpfs tmpfs /mnt/root/run
mkdir -p /mnt/root/boot /mnt/root/lib/modules/{KERNEL} /mnt/root/usr/src/linux-headers-{KERNEL}
: >/mnt/root/boot/vmlinuz-{KERNEL}
: >/mnt/root/usr/src/linux-headers-{KERNEL}/Makefile
ln -s /usr/src/linux-headers-{KERNEL} /mnt/root/lib/modules/{KERNEL}/build
"""


def test_an_image_without_a_gpu_gets_driver_toolkit_and_runtimes(lab: Lab, gpunode_site: Path) -> None:
    host = lab.host("debian12", gpu="none", runtime="docker")
    host.install_gpunode(ROOT, gpunode_site)
    host.nsrun(MOUNT, check=True)
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
