"""The gcc that DKMS builds with, against the one that built the kernel."""

from __future__ import annotations

import re

from gpunode.advice import named
from gpunode.checks import needs
from gpunode.checks.drv.kernels import BUILDS
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import numbers
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

_GCC = regex(r"gcc(?:-[0-9]{1,2}|-toolset-[0-9]{1,2}-gcc)?", re.A)


@check(
    "drv.compiler-match",
    Severity.WARNING,
    title="where DKMS could not build, it is not for want of the kernel's gcc",
    reads="/proc/version; the package list (gcc); nvidia.ko* below /lib/modules/RELEASE",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver"), ", or install the gcc that built the kernel"),
    needs=(*BUILDS, needs.dkms, needs.packages),
)
def compiler_match(host: HostFacts, context: Context) -> CheckOutcome:
    """The running kernel has no module, and every gcc here is older than the one that built the kernel: it stops at the
    kernel's options (unrecognized command-line option). An older gcc that has built the module is no fault.
    """
    wanted, release = host.kernel.compiler, host.kernel.release
    if wanted is None:
        return NotApplicable("which gcc built the running kernel is not known")
    if any(tree.release == release and tree.nvidia_module for tree in host.kernel.trees):
        return None
    there = {
        name: version[0]
        for name, package in host.packages.installed.items()
        if _GCC.fullmatch(name.partition(":")[0])
        and package.configured
        and (version := numbers(_upstream(package.version)))
    }
    if not there:
        return NotApplicable("no package of gcc is installed")
    newest = max(there, key=lambda name: there[name])
    if there[newest] >= wanted:
        return None
    return Finding(
        f"gcc {wanted} built the kernel, and the newest gcc here is {there[newest]}",
        evidence=f"/proc/version names gcc {wanted}; package {newest} {host.packages.installed[newest].version}",
        remedy=Remedy(
            RepairAction.UPGRADE,
            setup("--only", "driver"),
            f" (manually: install gcc {wanted}, then dkms autoinstall -k {named(release)})",
        ),
        otherwise=Remedy(RepairAction.UPGRADE, f"install gcc {wanted}, then dkms autoinstall -k {named(release)}"),
    )


def _upstream(version: str) -> str:
    """Without the epoch: "4:11.2.0-1ubuntu1"."""
    return version.rpartition(":")[2]
