"""How the driver came onto this host."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import driver_version, typed_for
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import numbers
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

# Packages whose version must equal the driver's. Persistenced, settings, modprobe and firmware have versions of their
# own in the distributions' archives and may differ.
CORE = regex(
    r"(?:lib)?nvidia-(?:open$|open-driver|driver|kernel-(?!common)|dkms|headless|utils|smi$|compute|ml\d|cfg\d|ptxjit|nvvm|fabric|imex|linux)"
    r"|libcuda1$|kmod-nvidia|cuda-drivers"
)
PIN = "pinning"


@check(
    "drv.package-consistency",
    Severity.ERROR,
    title="all driver packages are one version, fully installed",
    reads="the package list",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver")),
    needs=(needs.gpu, needs.own_driver, needs.packages),
)
def package_consistency(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver's packages are of two versions, or a package transaction was interrupted."""
    there = host.packages.installed
    core = {n: p for n, p in there.items() if CORE.match(n) and PIN not in n and p.status[1:2] != "c"}
    # Of all that the probe lists: dkms or the toolkit left so stop the next transaction as well.
    half = sorted(n for n, p in there.items() if not p.configured)
    if half:
        removed = [name for name in half if there[name].half_removed]
        words = [f"{listing(removed)} is half removed"] if removed else []
        words += [f"{listing(others)} is half installed"] if (others := [n for n in half if n not in removed]) else []
        return Finding(
            " and ".join(words),
            evidence=f"{half[0]} {there[half[0]].version} has status {there[half[0]].status!r}",
            remedy=Remedy(
                RepairAction.UPGRADE,
                f"{typed_for(host, 'repair')} shows what stopped it; ",
                setup("--only", "driver"),
                " finishes it",
            ),
        )
    if doubled := {name: versions for name, versions in host.packages.doubled.items() if "nvidia" in name}:
        return _in_two_versions(host, doubled)
    if not core:
        return NotApplicable("no driver package is installed")
    by_version: dict[str, list[str]] = {}
    for name, package in core.items():
        by_version.setdefault(driver_version(package.version) or "", []).append(name)
    by_version.pop("", None)
    if len(by_version) <= 1:
        return None
    return Finding(
        f"driver packages of {len(by_version)} versions are installed",
        evidence=" · ".join(f"{v}: {listing(sorted(names), 3)}" for v, names in sorted(by_version.items())),
        remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver"), " installs one version of all"),
    )


def _in_two_versions(host: HostFacts, doubled: Mapping[str, tuple[str, ...]]) -> Finding:
    """Where the old packages go after the new ones are installed, a power cut in between leaves both listed."""
    older = [f"{name}-{_bare(min(versions, key=_order))}" for name, versions in sorted(doubled.items())]
    name, versions = min(doubled.items())
    return Finding(
        f"{listing(sorted(doubled))}: installed in two versions, as an interrupted transaction leaves it",
        evidence=f"{typed_for(host, 'versions', name)} prints {' and '.join(versions)}",
        remedy=Remedy(
            RepairAction.UPGRADE,
            f"{typed_for(host, 'remove-version', *older)} removes the older; then ",
            setup("--only", "driver,toolkit"),
        ),
    )


def _bare(version: str) -> str:
    return version.rpartition(":")[2]  # no epoch: a version is removed without it


def _order(version: str) -> tuple[int, ...]:
    return numbers(_bare(version))


@check(
    "drv.install-method",
    Severity.ERROR,
    title="the driver was installed in one way only",
    reads="/usr/bin/nvidia-uninstall, the package list, /run/nvidia/driver",
    remedy=Remedy(RepairAction.UPGRADE, "nvidia-uninstall, then ", setup("--only", "driver")),
    needs=(needs.gpu, needs.no_platform_driver, needs.driver),
)
def install_method(host: HostFacts, context: Context) -> CheckOutcome:
    """Two installers have installed a driver on this host, and one will overwrite the other."""
    packaged = sorted(n for n, p in host.packages.installed.items() if CORE.match(n) and PIN not in n and p.configured)
    ways = [
        ("a .run installer", "/usr/bin/nvidia-uninstall exists", host.driver.runfile),
        ("packages", f"{listing(packaged, 2)} installed", bool(packaged)),
        ("a driver container", "/run/nvidia/driver exists", host.driver.container),
    ]
    used = [(way, evidence) for way, evidence, there in ways if there]
    if len(used) <= 1:
        return None
    remedy = Remedy(RepairAction.UPGRADE, "nvidia-uninstall, then ", setup("--only", "driver"))
    if host.driver.container:
        remedy = Remedy(
            RepairAction.CONFIGURE,
            "keep one: remove the host's driver, or set driver.enabled=false in the GPU Operator",
        )
    return Finding(
        f"the driver was installed by {' and by '.join(way for way, _ in used)}",
        evidence=" · ".join(evidence for _, evidence in used),
        remedy=remedy,
    )
