"""What must be right before packages are asked for anything."""

from __future__ import annotations

from gpunode.model.plan import Run, Step
from gpunode.planner.site import Site, through_proxy


def repair_step(site: Site) -> Step | None:
    """Finish what a killed transaction left half-configured; the package manager refuses all else until then."""
    broken = sorted(n for n, p in site.host.packages.installed.items() if not p.configured and p.status[1:2] != "n")
    if not broken:
        return None
    shown = ", ".join(broken[:4]) + (f" and {len(broken) - 4} more" if len(broken) > 4 else "")
    return Step(
        "packages.repair",
        f"finish configuring {shown}",
        "an earlier package transaction was cut off; nothing else can be installed before it is finished",
        (through_proxy(site.backend.repair(), site.spec.proxy),),
    )


def before_step(site: Site) -> Step | None:
    """Repositories that the driver's packages draw on (EPEL and CRB: dkms lives there)."""
    distro = site.distro
    if not distro.before or distro.before_package in site.host.packages.installed:
        return None
    runs = (
        Run(tuple(word.format(machine=site.host.os.machine) for word in argv), timeout_s=900, detach=True)
        for argv in distro.before
    )
    return Step(
        "repo.prerequisites",
        "enable EPEL and the distribution's builder repository",
        "dkms, which builds the kernel module, lives there",
        tuple(through_proxy(run, site.spec.proxy) for run in runs),
    )
