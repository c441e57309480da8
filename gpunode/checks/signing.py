"""Whether Secure Boot refuses the driver's module, which has a signature, for its key."""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.model.dkms import builds_driver
from gpunode.model.facts import HostFacts
from gpunode.model.plan import DRIVER_STEP, ENROL_STEP
from gpunode.remedy import Remedy, RepairAction, setup

# "Loading of module with unavailable key is rejected"; of a kernel that is locked down and does not enforce signatures
# "Lockdown: modprobe: unsigned module loading is restricted", though the module has one. Neither says of which module.
REJECTED = ("module with unavailable key", "unsigned module loading is restricted")
STEPS = (ENROL_STEP, DRIVER_STEP)
CONSOLE = "reboot and, in MokManager at the console, choose Enroll MOK, Continue, Yes"
BY_HAND = Remedy(RepairAction.CONFIGURE, f"queue the certificate of that key (mokutil --import); then {CONSOLE}")


def refused_key(host: HostFacts) -> tuple[str, Remedy] | None:
    """(how it is known, what to do); None where the key is no obstacle, or nothing is known of it."""
    signer = host.driver.signer
    if not host.security.secure_boot or host.driver.loaded is not None or signer is None:
        return None
    signed = f"modinfo -F signer nvidia prints {signer}"
    if host.security.mok_pending:
        return f"{signed}; mokutil lists its enrolment as pending", Remedy(RepairAction.REBOOT, CONSOLE)
    rejected = [line.strip() for line in host.driver.kernel_log if any(words in line for words in REJECTED)]
    if rejected:
        return f"{signed}; kernel log: {rejected[-1]}", enrol()
    if host.security.mok_enrolled is False and builds_driver(host.driver.dkms):
        return f"{signed}; mokutil --test-key: the key of DKMS is not enrolled", enrol()
    return None


def refused_later(host: HostFacts) -> str | None:
    """How it is known that the next module that DKMS builds is refused, though one that is loaded was not: the key was
    made anew since, or the firmware lost its list; None where nothing shows that.
    """
    security = host.security
    if not security.secure_boot or not security.locked_down or security.mok_pending:
        return None
    if security.mok_enrolled is not False or host.driver.loaded is None or not builds_driver(host.driver.dkms):
        return None
    return f"{host.driver.loaded} is loaded; mokutil --test-key: the key that DKMS signs with now is not enrolled"


def not_known(host: HostFacts) -> str | None:
    """Why nothing shows that a signed module, which is not loaded, may be; None where something does."""
    if host.security.mok_enrolled and builds_driver(host.driver.dkms):
        return None
    if unread := needs.kernel_log(host):
        return f"the kernel may not know the key of {host.driver.signer!r}: {unread}"
    return f"nothing shows whether the kernel knows the key of {host.driver.signer!r}, and the module is not loaded"


def enrol() -> Remedy:
    return Remedy(RepairAction.CONFIGURE, setup("--only", "driver"), f" queues the key for enrolment; then {CONSOLE}")
