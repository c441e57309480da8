"""Is there a driver for the kernel that runs, and for the one that boots next?"""

from __future__ import annotations

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.drv.loaded import library_versions
from gpunode.checks.registry import Context, check
from gpunode.checks.words import backend_of, typed_for
from gpunode.model.facts import HostFacts, KernelTree
from gpunode.model.plan import BUILD_STEP, DRIVER_STEP, HEADERS_STEP, MODULES_STEP
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.signed_modules import modules_of, pins_against_modules, signed_kind
from gpunode.remedy import Remedy, RepairAction, setup

BUILDS = (needs.gpu, needs.own_driver, needs.driver)
# What of a setup leads to a module for a kernel; it builds for the one that runs and the one that boots next.
TO_A_MODULE = (DRIVER_STEP, HEADERS_STEP, BUILD_STEP, MODULES_STEP)


@check(
    "drv.dkms-running",
    Severity.ERROR,
    title="DKMS built the driver for the running kernel",
    reads="dkms status; nvidia.ko* below /lib/modules/RELEASE",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver"), ", or dkms autoinstall"),
    needs=(*BUILDS, needs.dkms),
)
def dkms_running(host: HostFacts, context: Context) -> CheckOutcome:
    """DKMS has not built the driver for the kernel that runs."""
    running = host.kernel.release
    lines = [d for d in host.driver.dkms if d.of_driver]
    if any(d.kernel == running and d.state.startswith("installed") for d in lines):
        return None
    tree = _tree(host, running)
    if tree is not None and tree.nvidia_module is not None:
        return None
    if tree is None and not lines:
        return NotApplicable("neither dkms status nor the running kernel's module directory was read")
    states = listing(f"{d.module}/{d.version}, {d.kernel or 'no kernel'}: {d.state}" for d in lines)
    return Finding(
        f"no nvidia module is built for the running kernel {running}",
        evidence=f"dkms status: {states or 'no nvidia line'}",
        remedy=Remedy(
            RepairAction.UPGRADE,
            setup("--only", "driver"),
            "; the reason is in /var/lib/dkms/nvidia*/*/build/make.log (manually: dkms "
            f"autoinstall -k {named(running)})",
        ),
        steps=TO_A_MODULE,
        otherwise=Remedy(RepairAction.UPGRADE, _by_hand(_build(running))),
    )


@check(
    "drv.dkms-next",
    Severity.ERROR,
    title="the kernel that boots next has a driver",
    reads="/boot/vmlinuz-* and nvidia.ko* below /lib/modules/*; dkms status against libcuda.so.1 and libnvidia-ml.so.1",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver"), ", or dkms autoinstall -k RELEASE"),
    needs=BUILDS,
)
def dkms_next(host: HostFacts, context: Context) -> CheckOutcome:
    """The next reboot loses the GPUs: that kernel has no nvidia module."""
    bootable = [t for t in host.kernel.trees if t.bootable]
    if not bootable:
        return NotApplicable("no kernel in /boot has modules here: what boots next does not come from a package")
    without = [t for t in bootable if t.nvidia_module is None]
    if not without:
        return _of_another_version(host)
    following = next((t for t in bootable if t.release == host.kernel.next_boot), None)
    if following is not None and following in without:
        return _next_boot_is_bare(host, following)
    if following is None and len(without) == len(bootable):
        return _next_boot_is_bare(host, without[-1])
    by_hand = _module_by_hand(host, without[0].release)
    first = "" if signed_kind(host) else "install its headers and run "
    return Finding(
        f"{listing(t.release for t in without)} could be booted and has no nvidia module",
        evidence=f"/boot/vmlinuz-{without[0].release} is there, /lib/modules/{without[0].release} holds no nvidia.ko",
        remedy=Remedy(RepairAction.UPGRADE, f"remove that kernel, or {first}{by_hand}"),
        severity=Severity.WARNING,
    )


def _of_another_version(host: HostFacts) -> Finding | None:
    """DKMS built another version for the next kernel than the libraries are of: left from before an upgrade, or a .run
    installer's (-K). The module would refuse them (Driver/library version mismatch).
    """
    release = host.kernel.next_boot
    built = [d for d in host.driver.dkms if d.of_driver and d.kernel == release and d.state.startswith("installed")]
    libraries = library_versions(host)
    versions = {version for _, version in libraries}
    if release in (None, host.kernel.release) or not built or not versions:
        return None  # of the running kernel modinfo says it: drv.running-vs-userspace
    if any(d.version in versions for d in built):
        return None
    wanted = next((d for d in host.driver.dkms if d.of_driver and d.version in versions), None)
    return Finding(
        f"the next boot loads driver {built[0].version}, and the libraries are {libraries[0][1]}",
        evidence=f"dkms status: {built[0].module}/{built[0].version}, {release}: {built[0].state}; {libraries[0][0]}",
        remedy=Remedy(
            RepairAction.UPGRADE,
            f"install the module of {libraries[0][1]} for that kernel"
            if wanted is None
            else f"dkms install -m {named(wanted.module)} -v {named(wanted.version)} -k {named(str(release))} --force",
        ),
        severity=Severity.ERROR,
    )


def _next_boot_is_bare(host: HostFacts, tree: KernelTree) -> Finding:
    signed, by_hand = signed_kind(host), _module_by_hand(host, tree.release)
    cause = "" if tree.headers or signed else f": {tree.release} has no headers"
    alone = f"{by_hand}; until the archive has it, boot the older kernel" if signed else _by_hand(by_hand)
    return Finding(
        f"the next boot has no nvidia module{cause}",
        evidence=f"/boot/vmlinuz-{tree.release} is there, /lib/modules/{tree.release} holds no nvidia.ko",
        remedy=Remedy(
            RepairAction.UPGRADE,
            setup("--only", "driver"),
            f" before the next reboot (manually: {by_hand})",
        ),
        severity=Severity.ERROR,
        steps=TO_A_MODULE,
        otherwise=Remedy(RepairAction.UPGRADE, alone),
    )


def _module_by_hand(host: HostFacts, release: str) -> str:
    """What gives a kernel its module: "dkms autoinstall -k RELEASE", or the package of the one that Ubuntu built."""
    kind = signed_kind(host)
    if kind is None:
        return _build(release)
    from gpunode.packages.pins import unpinning

    pins, backend = pins_against_modules(host), backend_of(host)
    first = f"{unpinning(backend, pins)}; then " if pins and backend else ""
    return first + typed_for(host, "install", modules_of(kind, release))


def _build(release: str) -> str:
    return f"dkms autoinstall -k {named(release)}"


def _by_hand(build: str) -> str:
    return f"{build}; its make.log says why one fails"


@check(
    "drv.headers-running",
    Severity.ERROR,
    title="headers of the running kernel are installed",
    reads="/lib/modules/RELEASE/build/Makefile",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver")),
    needs=(*BUILDS, needs.dkms),
)
def headers_running(host: HostFacts, context: Context) -> CheckOutcome:
    """DKMS cannot build for the running kernel: its headers are missing."""
    tree = _tree(host, host.kernel.release)
    if tree is None:
        return NotApplicable(
            f"/lib/modules/{host.kernel.release} is not there: the kernel does not come from a package"
        )
    if tree.headers:
        return None
    return Finding(
        f"the headers of {tree.release} are missing",
        evidence=f"/lib/modules/{tree.release}/build leads to no Makefile",
        remedy=Remedy(
            RepairAction.UPGRADE,
            setup("--only", "driver"),
            f" (manually: install {named(f'linux-headers-{tree.release}')} or {named(f'kernel-devel-{tree.release}')})",
        ),
        steps=(HEADERS_STEP,),
        otherwise=Remedy(
            RepairAction.UPGRADE,
            f"install {named(f'linux-headers-{tree.release}')} or {named(f'kernel-devel-{tree.release}')}, again where "
            "the package is there and its files are gone",
        ),
    )


@check(
    "drv.headers-meta",
    Severity.WARNING,
    title="kernel updates install their headers",
    reads="the package list: the kernel's package and its headers (linux-headers-*, kernel-devel-matched, ...)",
    remedy=Remedy(RepairAction.UPGRADE, "install the headers' meta package"),
    needs=(*BUILDS, needs.dkms, needs.packages),
)
def headers_meta(host: HostFacts, context: Context) -> CheckOutcome:
    """The next kernel update comes without headers, so DKMS will not build for it."""
    installed = {name for name, package in host.packages.installed.items() if package.configured}
    backend = backend_of(host)
    pairs = backend.kernel_headers(installed) if backend else ()
    if not pairs:
        return NotApplicable("no kernel meta package is installed: kernels do not come by upgrade")
    missing = [(image, headers) for image, headers in pairs if headers not in installed]
    if not missing:
        return None
    image, headers = missing[0]
    return Finding(
        f"{image} is installed and {headers} is not",
        evidence=f"{image} installs new kernels, and DKMS builds for none of them without {headers}",
        remedy=Remedy(RepairAction.UPGRADE, setup("--only", "driver"), f" (manually: install {named(headers)})"),
        steps=(HEADERS_STEP,),
        otherwise=Remedy(RepairAction.UPGRADE, f"install {named(headers)}"),
    )


def _tree(host: HostFacts, release: str) -> KernelTree | None:
    return next((t for t in host.kernel.trees if t.release == release), None)
