"""Which driver is installed on a host, for checks and planner alike: by its packages and its module on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpunode.model.driver import DriverOrigin
from gpunode.model.facts import HostFacts
from gpunode.model.packages import PackageVersion
from gpunode.model.versions import DRIVER_VERSION
from gpunode.regex import regex

# Packages that stand for a whole driver, most telling first: NVIDIA's repository, then the distributions' archives.
# A module's package stands for one whose libraries were chosen by hand: NVIDIA's driver installation guide (595) has
# compute-only systems take libnvidia-compute and nvidia-dkms-open, on Debian nvidia-driver-cuda and
# nvidia-kernel-open-dkms; up to 580 Ubuntu's names hold the branch.
LEADS = (
    r"nvidia-open(-\d+)?",
    r"cuda-drivers(-\d+)?",
    r"nvidia-headless-no-dkms-\d+(-server)?(-open)?",
    r"nvidia-driver-(\d+(-server)?(-open)?|open)",
    r"nvidia-dkms(-\d+)?(-server)?(-open)?",
    r"nvidia-open-driver-G\d\d-signed(-cuda)?-kmp-\w+",
    r"nvidia-driver-G\d\d-kmp-\w+",
    r"nvidia-open-dkms",
    r"nvidia-open-kernel-dkms",
    r"nvidia-kernel-open-dkms",
    r"nvidia-kernel-dkms",
    r"nvidia-tesla-\d+-driver",
    r"nvidia-driver-branch-\d+",
    r"nvidia-driver-latest-dkms",
    r"nvidia-driver",
    r"(kmod|akmod)-nvidia(-(open-|latest-)?dkms|-open)?",
)
# Of the packages that stand for a driver, what NVIDIA's repository and SUSE's modules for it provide: "NAME VERSION".
# Where the archives have packages of the same name their versions tell: Ubuntu's archive has "-0ubuntu0.24.04.1" and
# "-0ubuntu1", Debian's "-1~deb12u1" and "-2", NVIDIA's repositories "-1ubuntu1", "-1" and "-1.el9" (up to 580.105
# "-0ubuntu1" as well, where nvidia-open-580 and cuda-drivers-580 alone tell). Without a branch Ubuntu has none of them.
CUDA_LEADS = regex(
    r"(nvidia-open(-\d+)?|cuda-drivers(-\d+)?|nvidia-driver-(branch-\d+|latest-dkms|open)|nvidia-kernel-open-dkms"
    r"|nvidia-(open-)?driver-G\d\d-.*kmp-\w+|kmod-.*) .*"
    r"|nvidia-(driver|dkms)-\d+(-open)? .*-1ubuntu\d+"
    r"|nvidia-(driver|dkms|dkms-open) .*-\d+ubuntu\d+"
    r"|nvidia-(driver|kernel-dkms) .*-1(\.\w+)?"
)
# A package of NVIDIA's repository that pins a branch or one version.
PINNING = "nvidia-driver-pinning"
# From 615 on NVIDIA's cuda-drivers is an empty package, which installs nothing of a driver (cupy/cupy#10295).
_EMPTY_FROM = 615
_PACKAGED = regex(rf"(?:[0-9]+:)?({DRIVER_VERSION})")


def upstream(version: str) -> str | None:
    """ "3:595.91.07-1.el9" -> "595.91.07"; None for what is not a driver's version."""
    match = _PACKAGED.match(version)
    return match.group(1) if match else None


def lead_package(host: HostFacts) -> str | None:
    """The installed package that stands for the driver, None when no package provides one."""
    installed = host.packages.installed
    names = [n for n, p in installed.items() if upstream(p.version) and p.status[:1] in "ih" and not _is_empty(n, p)]
    for pattern in LEADS:
        found = sorted(n for n in names if re.fullmatch(pattern, n))
        if found:
            return found[0]
    return None


def installed_source(host: HostFacts) -> DriverOrigin | None:
    """ "cuda" (NVIDIA's names and revisions) or "distro": where the installed driver came from; None without one."""
    lead = lead_package(host)
    if lead is None:
        return None
    return "cuda" if CUDA_LEADS.fullmatch(f"{lead} {host.packages.installed[lead].version}") else "distro"


def is_driver(name: str) -> bool:
    """Whether a package of this name belongs to a driver; the container toolkit's do not."""
    toolkit: Sequence[str] = ("nvidia-container", "libnvidia-container", "nvidia-docker")
    prefixes = ("nvidia-", "libnvidia-", "libcuda1", "cuda-drivers", "kmod-nvidia", "linux-modules-nvidia-", "libnvsdm")
    return name.startswith(prefixes) and not name.startswith(tuple(toolkit))


def driver_set(host: HostFacts) -> frozenset[str]:
    """The packages of the installed driver that are at its version; a distribution's helpers have their own."""
    lead = lead_package(host)
    if lead is None:
        return frozenset()
    installed = host.packages.installed
    version = upstream(installed[lead].version)
    return frozenset({n for n, p in installed.items() if is_driver(n) and upstream(p.version) == version} | {lead})


def exact_pins(host: HostFacts) -> tuple[str, ...]:
    """Packages of NVIDIA's that pin one version of the driver, and that gpunode did not install."""
    exact = re.compile(rf"{PINNING}-[0-9]+\.[0-9.]+")
    return tuple(sorted(n for n in host.packages.installed if exact.fullmatch(n) and n not in host.journal.packages))


def installed_version(host: HostFacts) -> str | None:
    """What will be loaded: the module on disk, else what the packages say (its module is not built yet)."""
    # A module whose version is none of NVIDIA's (somebody's own build) says nothing about branches.
    if re.match(r"[0-9]{3}\.[0-9]", host.driver.installed or ""):
        return host.driver.installed
    lead = lead_package(host)
    return upstream(host.packages.installed[lead].version) if lead else None


def _is_empty(name: str, package: PackageVersion) -> bool:
    version = upstream(package.version)
    return name == "cuda-drivers" and version is not None and int(version[:3]) >= _EMPTY_FROM


def signs_of_driver(host: HostFacts) -> tuple[str, ...]:
    """What on the disk shows a driver, whether or not the running kernel has a module of it; () where none is there.

    A kernel update, or a build by DKMS that failed, leaves all but the module for the running kernel. A library alone
    is no driver: CUDA's compiler brings libcuda onto build hosts that never had a GPU.
    """
    return tuple(_signs(host))


def _signs(host: HostFacts) -> Iterator[str]:
    driver = host.driver
    if driver.installed is not None:
        yield f"driver {driver.installed} is installed for kernel {host.kernel.release}"
    if lead := lead_package(host):
        package = host.packages.installed[lead]
        state = "is installed" if package.configured else f"has status {package.status!r}"
        yield f"package {lead} {package.version} {state}"
    if built := next((line for line in driver.dkms if line.of_driver), None):
        yield f"dkms status: {built.module}/{built.version}, {built.kernel or 'no kernel'}: {built.state}"
    if tree := next((tree for tree in host.kernel.trees if tree.nvidia_module), None):
        yield f"/lib/modules/{tree.release} holds {tree.nvidia_module}"
    if driver.runfile:
        yield "/usr/bin/nvidia-uninstall is there (a .run installer)"
