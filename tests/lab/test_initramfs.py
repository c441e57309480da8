"""Real dracut, in both of its modes: which modules an image holds after setup, and after undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .stubs.module import kernel_module

OLD = "6.0.0-lab"  # older than the kernel that runs, which boots next
IMAGE = f"/boot/initrd.img-{OLD}"
# As the packages of kernels build it: Debian 13's dracut has no update-initramfs.
BUILD = {"debian13-2026": "dracut -q --force --regenerate-all", "debian-sid-2026": "update-initramfs -u -k all"}
CONF = "/etc/dracut.conf.d/gpunode-nvidia.conf"
LOAD = "nvidia\nnvidia-uvm\n"


def add_kernel(host: Host) -> None:
    """Modules that dracut's drm takes along in a generic image, and an nvidia module that the host's own list names."""
    modules = f"/lib/modules/{OLD}"
    drm = ("drm_dev_register",)
    host.write(f"{modules}/kernel/drivers/gpu/drm/nouveau/nouveau.ko", kernel_module("nouveau", drm))
    host.write(f"{modules}/updates/dkms/nvidia.ko", kernel_module("nvidia"))
    host.nsrun(f": >{modules}/modules.order; : >{modules}/modules.builtin; depmod {OLD}", check=True)
    for path in (f"/boot/vmlinuz-{OLD}", IMAGE):
        host.write(path, "")
    host.nsrun("mkdir -p /lib/modules/$(uname -r) && : >/boot/vmlinuz-$(uname -r)", check=True)


def rebuild(host: Host) -> None:
    """As an upgrade of any package may, long after setup."""
    host.nsrun(BUILD[host.recipe.distribution], check=True)


def inside(host: Host) -> set[str]:
    names = host.nsrun(f"lsinitrd {IMAGE}", check=True).stdout.split()
    return {word.rsplit("/", 1)[-1] for word in names if word.endswith((".ko", "nouveau.conf"))}


# Each with the mode that is its default.
@pytest.mark.parametrize(("distribution", "mode"), [("debian13-2026", "no"), ("debian-sid-2026", "yes")])
def test_an_initramfs_holds_neither_nouveau_nor_a_module_of_nvidia(
    lab: Lab, tmp_path: Path, distribution: str, mode: str
) -> None:
    conf = f'hostonly="{mode}"\nadd_dracutmodules+=" drm "\ncompress="cat"\n'
    host = lab.host(distribution, gpu="h100", files={"/etc/dracut.conf.d/lab.conf": conf})
    add_kernel(host)
    me = Controller("ssh", tmp_path / "home")

    expect(me.gpunode(host, "setup", "--yes", "--only", "driver", "--trust-key", lab.repo_fingerprint), 0)
    assert host.read("/etc/modules-load.d/gpunode-nvidia.conf").endswith(LOAD)
    rebuild(host)
    assert inside(host) <= {"gpunode-nouveau.conf"}

    expect(me.gpunode(host, "undo", "--yes"), 0)
    assert not host.exists(CONF)
    assert inside(host) == {"yes": set(), "no": {"nouveau.ko", "nvidia.ko"}}[mode], "built again, with nothing omitted"

    host.nsrun(f"cp {IMAGE} /boot/initrd.img-$(uname -r)", check=True)
    found = me.gpunode(host, "check").stdout
    assert ("the initramfs loads nouveau at the next boot" in found) == (mode == "no"), found
