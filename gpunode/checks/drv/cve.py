"""Has the driver a known CVE, and what upgrades it on this host?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.advice import listing, named
from gpunode.checks import needs, words
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_users import gpu_users
from gpunode.model.installed import driver_set, exact_pins, installed_source, installed_version, lead_package
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

if TYPE_CHECKING:
    from gpunode.catalog.driver_cves import DriverCve

UPGRADE = setup("--only", "driver")


@check(
    "sec.driver-bulletin",
    Severity.WARNING,
    title="the driver has no CVE of NVIDIA's bulletins that its branch has fixed",
    reads="the driver's version against catalog/driver_cves.yaml",
    remedy=Remedy(RepairAction.UPGRADE, UPGRADE),
    needs=(needs.gpu, needs.host_driver, needs.version),
)
def bulletin(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver has a known CVE, which a newer version of its branch has fixed."""
    from gpunode.catalog.driver_cves import driver_cves, known_cve

    version = host.driver.loaded or host.driver.installed or installed_version(host) or ""
    if words.branch(version) not in driver_cves():
        return NotApplicable(f"no security bulletin that gpunode knows names the branch of driver {version}")
    cve = known_cve(version)
    if cve is None:
        return None
    remedy, evidence = _remedy(host, context, cve)
    return Finding(
        f"driver {cve.sentence(version)}",
        evidence=f"{'loaded' if host.driver.loaded else 'installed'} is {version}{evidence}",
        remedy=remedy,
    )


def _exact_pin(host: HostFacts) -> words.Unpinning | None:
    exact = exact_pins(host)
    return words.Unpinning(f"{listing(exact)} pins it", words.typed_for(host, "purge", *exact)) if exact else None


def _remedy(host: HostFacts, context: Context, cve: DriverCve) -> tuple[Remedy, str]:
    """What upgrades the driver here, and what the plan goes by when it does not."""
    from gpunode.catalog.driver_cves import has_fix, known_cve

    installed, lead = installed_version(host), lead_package(host)
    if installed and known_cve(installed) is None:
        return Remedy(RepairAction.REBOOT, f"reboot: driver {named(installed)} is installed already"), ""
    if host.image_based:
        return Remedy(RepairAction.UPGRADE, "upgrade the driver in the image that this host boots"), ""
    if lead is None or host.driver.image:
        return Remedy(RepairAction.UPGRADE, "upgrade it with what installed it"), "; no package manager owns the driver"
    pins = words.unpinning(host, driver_set(host)) or _exact_pin(host)
    first = (f"{pins.command}; then ",) if pins else ()
    evidence = f"; {pins.evidence}" if pins else ""
    if installed_source(host) == "distro":
        newest = f"{words.typed_for(host, 'install', lead)}, when the distribution has it"
        return Remedy(RepairAction.UPGRADE, *first, newest), f"{evidence}; the distribution's archive provides it"
    if not has_fix(context.catalog, context.catalog.distro(host.os), cve, host.driver.installed_flavour):
        other = f"install a newer branch: NVIDIA's repository for this system has none of {cve.branch}"
        return Remedy(RepairAction.UPGRADE, *first, other), evidence
    if working := gpu_users(host):
        drain = f"end {listing(working)} first (drain the node); then "
        return Remedy(RepairAction.UPGRADE, *first, drain, UPGRADE), evidence
    return Remedy(RepairAction.UPGRADE, *first, UPGRADE), evidence
