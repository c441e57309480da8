"""A distribution's signed modules: not pinned, since they follow its kernel; fetched for the one that boots next."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.model.action import Run
from gpunode.model.driver import DriverChoice
from gpunode.model.installed import is_driver, upstream
from gpunode.model.plan import Step
from gpunode.packages.base import Wanted, installation
from gpunode.planner.driver.one_branch import of_one_branch
from gpunode.planner.kernel.modules import next_tree
from gpunode.planner.kernel_packages import kernel_flavour
from gpunode.planner.site import Site, through_proxy

MODULES = "linux-modules-nvidia-"
LEAD = "nvidia-headless-no-dkms-"
LOOK = """find "/lib/modules/$1/" -name 'nvidia.ko*' | grep . && exit 0
echo "Error: $1 still has no nvidia module: the archive has none for this kernel yet" >&2
exit 65
"""


def holdable(names: Sequence[str]) -> list[str]:
    """What may be pinned: with the modules' meta-package pinned, the next kernel would boot without one.

    Its dependencies keep it back by themselves while it needs another driver than the one that is pinned.
    """
    return [name for name in names if not name.startswith(MODULES)]


def modules_step(site: Site, driver: DriverChoice) -> Step | None:
    """The kernel that boots next has no module: the whole set is upgraded to where the archive has one for it."""
    tree, lead = next_tree(site.host), driver.packages[0] if driver.packages else ""
    if (
        not driver.kept
        or not driver.signed
        or not lead.startswith(LEAD)
        or tree is None
        or tree.nvidia_module is not None
    ):
        return None
    there = site.host.packages.installed
    peers = {n for n, p in there.items() if is_driver(n) and upstream(p.version) == driver.version}
    meta = f"{MODULES}{lead.removeprefix(LEAD)}-{kernel_flavour(site.host, site.backend.default_flavour)}"
    names = sorted({*peers, lead})
    wanted = [Wanted(name) for name in (*names, meta)]
    upgrade = of_one_branch(driver, installation(site.backend, wanted, ("*nvidia*", "libcuda*")))
    runs = [site.backend.refresh_all(), *upgrade]
    runs += [site.backend.hold(names)] if site.spec.hold else []
    look = Run(("sh", "-s", "--", tree.release), stdin=LOOK, description=f"look for the module of {tree.release}")
    return Step(
        "driver.modules",
        f"upgrade {meta} and its driver for {tree.release}",
        f"{tree.release} boots next and has no nvidia module",
        (*(through_proxy(run, site.spec.proxy) for run in runs), look),
        replan_after=True,
    )
