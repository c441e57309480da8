"""What waits for the next boot."""

from __future__ import annotations

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

BUILD_IMAGES = {
    "update-initramfs": ("update-initramfs", "-c", "-k"),
    "dracut": ("dracut", "--force", "--kver"),
}


@check(
    "boot.default-kernel",
    Severity.ERROR,
    title="the kernel that boots next has an initramfs",
    reads="/boot/initrd* and initramfs* of each kernel in /lib/modules; grubenv, /etc/default/grub",
    remedy=Remedy(RepairAction.CONFIGURE, "make room in /boot and build the kernel's initramfs"),
    needs=(needs.gpu, needs.host_driver, needs.system),
)
def default_kernel(host: HostFacts, context: Context) -> CheckOutcome:
    """The kernel that boots next has no initramfs, as a full /boot leaves it: the host does not come back. Whether it
    has a driver is drv.dkms-next's."""
    following, images = host.kernel.next_boot, host.system.initramfs if host.system else None
    if following is None:
        return NotApplicable("which kernel boots next is not known")
    if images is None:
        return NotApplicable("/boot was not read")
    if following in images:
        return None
    if not images:
        return NotApplicable("no kernel has an initramfs of its own in /boot")
    return Finding(
        f"{following} boots next and has no initramfs",
        evidence=f"/boot has one of {listing(sorted(images))}, and none of {following}",
        remedy=Remedy(RepairAction.CONFIGURE, _build(host, following)),
    )


def _build(host: HostFacts, release: str) -> str:
    words = BUILD_IMAGES.get(host.kernel.initramfs_tool or "")
    command = f"run {' '.join(words)} {named(release)}" if words else "build it"
    return f"make room in /boot, {command}, and only then reboot"


@check(
    "boot.uptime-vs-install",
    Severity.WARNING,
    title="the modules of the running kernel are still there",
    reads="/lib/modules against /proc/sys/kernel/osrelease",
    remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it"),
    needs=(needs.gpu, needs.own_driver, needs.loaded),
)
def uptime_vs_install(host: HostFacts, context: Context) -> CheckOutcome:
    """An upgrade removed the kernel that runs: no module that is not loaded yet can be loaded until the reboot."""
    others = [tree.release for tree in host.kernel.trees if tree.bootable]
    if any(tree.release == host.kernel.release for tree in host.kernel.trees):
        return None
    if not others:
        return NotApplicable("no kernel in /boot has modules here: the kernel does not come from a package")
    return Finding(
        f"{host.kernel.release} runs, and its modules are gone",
        evidence=f"/lib/modules has {listing(sorted(others))}, and no {host.kernel.release}",
        remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it"),
    )


@check(
    "boot.secure-boot",
    Severity.WARNING,
    title="no key waits for a confirmation at the console",
    reads="the EFI variable MokNew; mokutil --test-key",
    remedy=Remedy(RepairAction.REBOOT, "reboot, and confirm the key at the console"),
    needs=(needs.gpu, needs.own_driver),
)
def secure_boot(host: HostFacts, context: Context) -> CheckOutcome:
    """A signing key waits to be enrolled at the console: until then Secure Boot refuses the modules signed with it."""
    if host.security.secure_boot is None:
        return NotApplicable("not a UEFI machine, or the Secure Boot state is not known")
    if not host.security.secure_boot or not host.security.mok_pending:
        return None
    if host.driver.loaded is None:
        return NotApplicable("boot.module-signer shows what it keeps from loading")
    return Finding(
        "a signing key waits for its confirmation at the console",
        evidence="/sys/firmware/efi/efivars/MokNew-* is there: mokutil --import was run, and the key is not enrolled",
        remedy=Remedy(
            RepairAction.REBOOT,
            "reboot with a console and choose Enroll MOK; or mokutil --revoke-import, when the key is not needed",
        ),
    )
