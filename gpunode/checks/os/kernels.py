"""Is the kernel one that the driver can be built for?"""

from __future__ import annotations

from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.installed import installed_version
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup


@check(
    "os.kernel-supported",
    Severity.WARNING,
    title="the driver builds on the kernels that may boot",
    reads="the driver's version and /boot/vmlinuz-* against catalog/kernels.yaml; nvidia.ko* below /lib/modules/*",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver")),
    needs=(needs.gpu, needs.own_driver, needs.driver, needs.dkms),
)
def kernel_supported(host: HostFacts, context: Context) -> CheckOutcome:
    """The driver is known not to build on a kernel of this host."""
    from gpunode.catalog.kernels import misfit

    version = installed_version(host)
    for tree in host.kernel.trees:
        row = misfit(version, tree.release) if tree.nvidia_module is None else None
        if row and version:
            better = row.first or "another branch"
            return Finding(
                row.sentence(version, tree.release),
                evidence=f"/lib/modules/{tree.release} holds no nvidia.ko; {row.source}",
                remedy=Remedy(RepairAction.UPGRADE, f"upgrade the driver to {better}, or boot an older kernel"),
            )
    return None if version else NotApplicable("the version of the driver is not known")
