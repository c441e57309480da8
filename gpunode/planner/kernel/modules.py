"""A module for every kernel that may boot: built where it is missing, signed where needed, proven before a reboot."""

from __future__ import annotations

from gpunode import resources
from gpunode.catalog.kernels import misfit
from gpunode.model.action import Action, Run
from gpunode.model.dkms import DkmsLine
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import HostFacts, KernelTree
from gpunode.model.installed import installed_source
from gpunode.model.plan import BUILD_STEP, Step
from gpunode.model.spec import Spec
from gpunode.planner.kernel.dkms import DOES_NOT_BUILD, ways_out
from gpunode.planner.site import Site

BUILD_S = 3600.0  # the largest module took minutes on two cores; four kernels in a row take longer


def build_step(site: Site, driver: DriverChoice) -> Step | None:
    """The packages are in, but a kernel that runs or boots next has no module, or one that Secure Boot refuses.

    Headers came later, a build was interrupted, a kernel was installed while its headers were missing (dkms(8):
    autoinstall builds what is registered, for one kernel).
    """
    if not driver.kept or driver.signed or not driver.packages or "dkms" not in site.host.packages.installed:
        return None
    bare = tuple(release for release in without_module(site.host) if misfit(driver.version, release) is None)
    unsigned = _unsigned(site)
    if not bare and not unsigned:
        return None
    actions: list[Action] = []
    for release in bare:
        # Its exit code says little (see _prove), so the module itself is checked.
        build = Run(("dkms", "autoinstall", "-k", release), ok_codes=tuple(range(256)), timeout_s=BUILD_S, detach=True)
        actions += [build, _prove(release, ways_out(site, installed_source(site.host) or driver.source))]
    if unsigned:
        # `dkms build` signs with the key of its framework.conf; a module that is there is kept without --force.
        module = ("-m", unsigned[0], "-v", unsigned[1], "-k", site.host.kernel.release, "--force")
        actions += [Run(("dkms", verb, *module), timeout_s=BUILD_S, detach=True) for verb in ("build", "install")]
    return Step(BUILD_STEP, _title(bare, unsigned), _why(site, driver, bare), tuple(actions), replan_after=True)


def kernels(host: HostFacts) -> tuple[str, ...]:
    """Releases that must have headers and a module: the running kernel and the next; in an image, those in its /boot.

    An image does not run, so the kernel that does is somebody else's.
    """
    if host.init == "chroot":
        return tuple(tree.release for tree in host.kernel.trees if tree.bootable)
    return tuple(dict.fromkeys(release for release in (host.kernel.release, host.kernel.next_boot) if release))


def without_module(host: HostFacts) -> tuple[str, ...]:
    """Those of the kernels that may boot that have no nvidia module."""
    if host.init == "chroot":
        return tuple(t.release for t in host.kernel.trees if t.bootable and t.nvidia_module is None)
    running = (host.kernel.release,) if host.driver.installed is None else ()
    following = next_tree(host)
    return tuple(dict.fromkeys(running + ((following.release,) if following and _is_bare(host, following) else ())))


def elsewhere(host: HostFacts) -> str | None:
    """The kernel that boots next when it has a module and the running one, which is older, has none."""
    tree = next_tree(host)
    bare = host.driver.installed is None and tree is not None and tree.release != host.kernel.release
    return tree.release if bare and tree and tree.nvidia_module else None


def boot_fault(host: HostFacts, spec: Spec) -> str | None:
    """Why a reboot would lose the GPUs: the kernel that boots next has no module, or another version of it.

    None when it has one, when no driver is wanted or there (then nothing is lost), and when what boots next does not
    come from a package (a virtual machine whose kernel lies outside).
    """
    if "driver" not in spec.only or spec.driver.kind == "none" or not host.gpus:
        return None
    tree = next_tree(host)
    if tree is None:
        bare = host.driver.installed is None and not any(t.bootable for t in host.kernel.trees)
        return f"{host.kernel.release} boots again and has no nvidia module" if bare else None
    if _is_bare(host, tree):
        cause = "" if tree.headers else ", and no headers to build one"
        return f"{tree.release} boots next and has no nvidia module{cause}"
    built = {line.version for line in _dkms_of(host, tree.release)}
    wanted = host.driver.installed
    if built and wanted and host.kernel.release != tree.release and wanted not in built:
        return f"{tree.release} boots next with module {', '.join(sorted(built))}, and {wanted} is installed"
    return None


def next_tree(host: HostFacts) -> KernelTree | None:
    """The kernel that boots next; where that is not known, the newest of those in /boot."""
    bootable = [t for t in host.kernel.trees if t.bootable]
    named = next((t for t in bootable if t.release == host.kernel.next_boot), None)
    return named or (bootable[-1] if bootable else None)


def _is_bare(host: HostFacts, tree: KernelTree) -> bool:
    if tree.release == host.kernel.release:
        return host.driver.installed is None and tree.nvidia_module is None
    return tree.nvidia_module is None


def _dkms_of(host: HostFacts, release: str) -> list[DkmsLine]:
    return [d for d in host.driver.dkms if d.kernel == release and d.of_driver]


def _unsigned(site: Site) -> tuple[str, str] | None:
    """(module, version) in dkms of an installed module without a signature, on a host whose firmware wants one."""
    host = site.host
    if not host.security.secure_boot or host.driver.installed is None or host.driver.signer:
        return None
    lines = _dkms_of(host, host.kernel.release)
    return (lines[0].module, lines[0].version) if lines else None


def _prove(release: str, ways: str) -> Run:
    # Older dkms ends `autoinstall` with 0 when a build failed, newer with 11; the reason stands in make.log only.
    return Run(
        ("sh", "-s", "--", release),
        timeout_s=60,
        stdin=resources.script("kernel/explain_build") + resources.script("kernel/prove_module"),
        description=f"look for the module of {release}",
        remedies=((DOES_NOT_BUILD, ways),),
    )


def _title(bare: tuple[str, ...], unsigned: tuple[str, str] | None) -> str:
    parts = [f"build the module for {' and '.join(bare)} with dkms"] if bare else []
    parts += [f"build {unsigned[0]} {unsigned[1]} again, signed"] if unsigned else []
    return "; ".join(parts)


def _why(site: Site, driver: DriverChoice, bare: tuple[str, ...]) -> str:
    if not bare:
        return "Secure Boot is on, and the module has no signature"
    running = site.host.kernel.release
    follow = [r for r in bare if r != running]
    reasons = [f"/lib/modules/{running} has no nvidia module"] if running in bare else []
    reasons += [f"{release} boots next and would come up without a GPU" for release in follow]
    return f"{driver.packages[0]} is installed, but {'; '.join(reasons)}"
