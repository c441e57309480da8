"""What the kernel was started with, and what it will be started with next."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs, signing
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.initramfs import DracutFacts
from gpunode.model.kept_out import LIFTS_BLOCK, kept_from_loading
from gpunode.model.plan import NOUVEAU_STEP
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

RIVALS = ("nouveau", "nova_core")
BLOCKS = regex(
    r"(?:^|\s)((?:module_blacklist|modprobe\.blacklist|rd\.driver\.blacklist)=(?:\S*,)?nvidia(?=[,\s]|$)\S*)"
)


@check(
    "boot.nouveau-loaded",
    Severity.ERROR,
    title="neither nouveau nor nova is loaded",
    reads="/sys/module",
    remedy=Remedy(RepairAction.REBOOT, setup("--only", "driver", "--reboot", "if-needed")),
    needs=(needs.gpu, needs.own_driver),
)
def nouveau_loaded(host: HostFacts, context: Context) -> CheckOutcome:
    """nouveau (or nova) is loaded in place of the NVIDIA driver."""
    found = [name for name in RIVALS if name in host.kernel.modules]
    if not found:
        return None
    return Finding(
        f"{listing(found)} is loaded",
        evidence=f"/sys/module/{found[0]} exists",
        remedy=Remedy(
            RepairAction.REBOOT,
            setup("--only", "driver", "--reboot", "if-needed"),
            " blacklists it and rebuilds the initramfs",
        ),
        steps=(NOUVEAU_STEP,),
        otherwise=_by_hand(RepairAction.REBOOT, found[0], ", rebuild the initramfs and reboot"),
    )


def _by_hand(action: RepairAction, name: str, then: str) -> Remedy:
    return Remedy(action, f"echo blacklist {name} > /etc/modprobe.d/blacklist-{name}.conf{then}")


@check(
    "boot.nouveau-blacklisted",
    Severity.WARNING,
    title="nouveau is blacklisted",
    reads="/etc/modprobe.d, /usr/lib/modprobe.d and the kernel command line",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "driver")),
    needs=(needs.gpu, needs.own_driver, needs.module),
)
def nouveau_blacklisted(host: HostFacts, context: Context) -> CheckOutcome:
    """nouveau is not blacklisted: at the next boot it may bind the GPUs first."""
    if "nouveau" in host.kernel.blacklisted:
        return None
    return Finding(
        "nouveau is not blacklisted",
        evidence="no `blacklist nouveau` in modprobe.d, no modprobe.blacklist=nouveau on the kernel command line",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "driver")),
        steps=(NOUVEAU_STEP,),
        otherwise=_by_hand(RepairAction.CONFIGURE, "nouveau", " and rebuild the initramfs"),
    )


@check(
    "boot.initramfs",
    Severity.ERROR,
    title="dracut's initramfs leaves the GPUs to the installed driver",
    reads="dracut.conf.d, the age of the images in /boot; lsinitrd, where those leave doubt",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "driver")),
    needs=(needs.gpu, needs.own_driver, needs.module),
)
def initramfs(host: HostFacts, context: Context) -> CheckOutcome:
    """The initramfs loads nouveau, or an nvidia module from before the last change of driver, at the next boot."""
    dracut = host.kernel.dracut
    if dracut is None:
        return NotApplicable("dracut does not build this host's initramfs")
    image = next((image for image in dracut.images if image.release == host.kernel.release), None)
    if image is None:
        return NotApplicable(f"no initramfs of {host.kernel.release} was found")
    if image.modules is None:
        sure = {"nvidia", "nouveau"} <= dracut.kept_out and "configuration" not in image.newer
        return None if sure else NotApplicable(f"{image.path} was not looked into (lsinitrd, as root)")
    rivals = sorted(image.modules & set(RIVALS) - dracut.blocked)
    if rivals and not image.blacklists:
        return _in_initramfs(rivals, f"lsinitrd {image.path} shows {listing(rivals)} and no blacklist", dracut)
    if "nvidia" in image.modules and "module" in image.newer:
        return _in_initramfs(["nvidia"], f"lsinitrd {image.path} shows nvidia; the one on disk is newer", dracut)
    return None


def _in_initramfs(names: list[str], evidence: str, dracut: DracutFacts) -> Finding:
    asked = sorted(dracut.added & set(RIVALS) & set(names))
    remedy = Remedy(RepairAction.CONFIGURE, setup("--only", "driver"), " omits it and rebuilds the initramfs")
    if asked:
        remove = f"remove {listing(asked)} from add_drivers in /etc/dracut.conf.d and run dracut --force"
        remedy = Remedy(RepairAction.CONFIGURE, remove)
    return Finding(
        f"the initramfs loads {listing(names)} at the next boot",
        evidence=evidence,
        remedy=remedy,
    )


@check(
    "boot.cmdline-blocks",
    Severity.ERROR,
    title="the kernel command line and modprobe.d let the driver load",
    reads="/proc/cmdline; install and alias in modprobe.d",
    remedy=Remedy(
        RepairAction.CONFIGURE,
        "remove the option from /etc/default/grub, run update-grub (or grub2-mkconfig) and reboot",
    ),
    needs=(needs.gpu, needs.host_driver),
)
def cmdline_blocks(host: HostFacts, context: Context) -> CheckOutcome:
    """The kernel command line or modprobe.d forbids the nvidia module: the next boot does not load it."""
    found = BLOCKS.search(host.kernel.cmdline)
    if found is None and (names := sorted(kept_from_loading(host))):
        return Finding(
            f"modprobe.d keeps {listing(names)} from loading",
            evidence=f"install with /bin/false, or alias with off, names {listing(names)}",
            remedy=Remedy(RepairAction.CONFIGURE, LIFTS_BLOCK),
        )
    if not host.kernel.cmdline:
        return NotApplicable("/proc/cmdline was not read")
    if found is None:
        return None
    return Finding(
        "the kernel command line blacklists nvidia",
        evidence=f"/proc/cmdline: {found.group(1)}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "remove the option from /etc/default/grub, run update-grub (or grub2-mkconfig) and reboot",
        ),
    )


@check(
    "boot.pending-reboot",
    Severity.WARNING,
    title="no update is waiting for a reboot",
    reads="/run/reboot-required and /run/reboot-required.pkgs",
    remedy=Remedy(RepairAction.REBOOT, "reboot the host"),
    needs=(needs.gpu,),
)
def pending_reboot(host: HostFacts, context: Context) -> CheckOutcome:
    """An update is installed and needs a reboot."""
    if host.kernel.reboot_required is None:
        return None
    asked = listing(sorted(set(host.kernel.reboot_required.split()))) or "it names no package"
    return Finding(
        "a reboot is pending",
        evidence=f"/run/reboot-required.pkgs: {asked}",
        remedy=Remedy(RepairAction.REBOOT, "drain the node and reboot it"),
    )


@check(
    "boot.module-signer",
    Severity.ERROR,
    title="the kernel may load the driver under Secure Boot",
    reads="the SecureBoot EFI variable; modinfo -F signer nvidia; mokutil --test-key; the kernel log",
    remedy=Remedy(
        RepairAction.UPGRADE,
        "install the distribution's signed modules, or enrol the signing key at the console (mokutil --import)",
    ),
    needs=(needs.gpu, needs.own_driver, needs.module),
)
def module_signer(host: HostFacts, context: Context) -> CheckOutcome:
    """Secure Boot is on, and the nvidia module is not signed by a key that it knows: the kernel refuses it."""
    if host.security.secure_boot is None:
        return NotApplicable("not a UEFI machine, or the Secure Boot state is not known")
    if key := signing.refused_key(host):
        summary = "Secure Boot is on, and the key that signed the nvidia module is not enrolled"
        return Finding(summary, evidence=key[0], remedy=key[1], steps=signing.STEPS, otherwise=signing.BY_HAND)
    if later := signing.refused_later(host):
        return Finding(
            "Secure Boot refuses the next module that DKMS builds, for a newer kernel, say: its key is not enrolled",
            evidence=later,
            remedy=signing.enrol(),
            steps=signing.STEPS,
            otherwise=signing.BY_HAND,
        )
    if not host.security.secure_boot or host.driver.loaded is not None:
        return None
    if host.driver.signer:
        unknown = signing.not_known(host)
        return NotApplicable(unknown) if unknown else None
    if "modinfo" in host.unread:
        return NotApplicable(f"modinfo was not read: {host.unread['modinfo']}")
    return Finding(
        "Secure Boot is on and the nvidia module is not signed",
        evidence="modinfo -F signer nvidia prints nothing",
        remedy=Remedy(
            RepairAction.UPGRADE,
            "install the distribution's signed modules, or sign with an enrolled key (mokutil "
            "--import KEY, then confirm at the console)",
        ),
    )
