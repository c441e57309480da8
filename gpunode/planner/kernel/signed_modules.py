"""A distribution's signed modules: nothing is pinned that they follow; fetched for the kernel that boots next."""

from __future__ import annotations

from gpunode.model.action import Run
from gpunode.model.driver import DriverChoice
from gpunode.model.installed import is_driver, upstream
from gpunode.model.plan import MODULES_STEP, UNHOLD_STEP, Step
from gpunode.model.signed_modules import SIGNED_MODULES, modules_of, pins_against_modules, signed_kind
from gpunode.packages.base import Wanted, installation
from gpunode.packages.pins import pinned_by_others
from gpunode.planner.driver.installed import lifted_pins
from gpunode.planner.driver.one_branch import of_one_branch
from gpunode.planner.kernel.modules import next_tree
from gpunode.planner.kernel_packages import kernel_flavour
from gpunode.planner.site import Site, through_proxy

LOOK = """find "/lib/modules/$1/" -name 'nvidia.ko*' | grep . && exit 0
echo "Error: $1 still has no nvidia module: the archive has none for this kernel yet" >&2
exit 65
"""


def brings_signed(choice: DriverChoice) -> bool:
    """Whether the packages to install are those of signed modules, whose driver is not pinned."""
    return any(name.startswith(SIGNED_MODULES) for name in choice.packages)


def unhold_step(site: Site) -> Step | None:
    """The pins that an earlier gpunode put on such a driver; those of others are named by os.held-packages."""
    ours = [name for name in pins_against_modules(site.host) if name not in _theirs(site)]
    if not ours:
        return None
    return Step(
        UNHOLD_STEP,
        "remove gpunode's pins of the driver's packages",
        "its modules come with each kernel, for the driver's newest version: pinned, the next kernel has none",
        (site.backend.unhold(ours),),
        undo=(site.backend.hold(ours),),
        safe=True,
    )


def modules_step(site: Site, driver: DriverChoice) -> Step | None:
    """The kernel that boots next has no module: the whole set is upgraded to where the archive has one for it."""
    tree, kind = next_tree(site.host), signed_kind(site.host)
    if not driver.kept or kind is None or tree is None or tree.nvidia_module is not None:
        return None
    there, theirs = site.host.packages.installed, _theirs(site)
    peers = {n for n, p in there.items() if is_driver(n) and upstream(p.version) == driver.version}
    meta = modules_of(kind, kernel_flavour(site.host, site.backend.default_flavour, tree.release))
    wanted = [Wanted(name) for name in (*sorted({*peers, *driver.packages}), meta)]
    upgrade = of_one_branch(driver, installation(site.backend, wanted, ("*nvidia*", "libcuda*")))
    lift = [site.backend.unhold(theirs)] if theirs else []
    look = Run(("sh", "-s", "--", tree.release), stdin=LOOK, description=f"look for the module of {tree.release}")
    return Step(
        MODULES_STEP,
        f"upgrade {meta} and its driver for {tree.release}{lifted_pins(site.host, theirs)}",
        f"{tree.release} boots next and has no nvidia module",
        (*(through_proxy(run, site.spec.proxy) for run in (site.backend.refresh_all(), *lift, *upgrade)), look),
        undo=(site.backend.hold(theirs),) if theirs else (),
        replan_after=True,
    )


def _theirs(site: Site) -> tuple[str, ...]:
    return pinned_by_others(site.host, pins_against_modules(site.host))
