"""What is kept out of the initramfs, and what builds it again.

dracut takes along what /etc/modules-load.d names, and in a generic image (hostonly=no) all of drivers/gpu, but not
/etc/modprobe.d with its blacklist. So nouveau would take the GPUs before the root is mounted, or the nvidia module of
before the last change of driver would. NVIDIA's, SUSE's and RPM Fusion's packages omit nvidia's modules too
(/usr/lib/dracut/dracut.conf.d/99-nvidia.conf, /etc/dracut.conf.d/60-nvidia-*.conf); Debian's and Ubuntu's do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpunode import resources
from gpunode.model.action import WHATEVER, PutFile, Run
from gpunode.model.facts import HostFacts

DRACUT_FILE = "/etc/dracut.conf.d/gpunode-nvidia.conf"
# Underscores: dracut 106 puts them in the place of the first hyphen of the list only.
OMITTED = ("nouveau", "nova_core", "nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem")
COMMANDS = {
    "update-initramfs": ("update-initramfs", "-u", "-k", "all"),
    "dracut": ("dracut", "--force", "--regenerate-all"),
    "mkinitcpio": ("mkinitcpio", "-P"),
}
LIMIT_S = 900.0


def rebuild(host: HostFacts) -> tuple[Run, ...]:
    """The command that builds every initramfs again; none where no tool for it is known."""
    argv = COMMANDS.get(host.kernel.initramfs_tool or "")
    return (Run(argv, timeout_s=LIMIT_S, detach=True),) if argv else ()


def rebuild_if_it_can(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The rollback of a step that ends with `rebuild`: where that failed, as in a full /boot, it fails once more.

    The step has failed with the tool's words by then, its files are back, and the tools write an image anew before they
    replace one: nothing is left to be recovered by hand.
    """
    return tuple(replace(run, ok_codes=WHATEVER) for run in runs)


def dracut_file(host: HostFacts) -> PutFile | None:
    """gpunode's configuration for dracut; None where it is not needed: others have omitted the same, or ask for it."""
    dracut = host.kernel.dracut
    if dracut is None:
        return None
    if {"nvidia", "nouveau"} <= dracut.kept_out | dracut.added:
        return None
    text = resources.render("dracut/nvidia.conf.j2", modules=OMITTED)
    return PutFile(DRACUT_FILE, text, expect_sha256=host.file(DRACUT_FILE).sha256, any_before=True)


def outdated(host: HostFacts) -> str | None:
    """Why an initramfs must be built again although nothing is to be written."""
    dracut = host.kernel.dracut
    for image in dracut.images if dracut else ():
        if "configuration" in image.newer:
            return f"{image.path} is older than dracut's configuration of what to omit"
        if dracut and "module" in image.newer and "nvidia" in dracut.added | (image.modules or frozenset()):
            return f"{image.path} holds nvidia's modules, and is older than those that are installed"
    return None
