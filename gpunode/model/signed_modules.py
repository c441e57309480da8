"""Ubuntu's own modules, one package for each kernel: whether a host's driver has them, and what pins keep away."""

from __future__ import annotations

from gpunode.model.facts import HostFacts
from gpunode.model.installed import installed_version, is_driver, lead_package
from gpunode.regex import regex

SIGNED_MODULES = "linux-modules-nvidia-"
_KIND = r"(\d{3}(?:-server)?(?:-open)?)"  # "595-server-open"
_MODULES = regex(rf"{SIGNED_MODULES}{_KIND}-.+")
_NO_DKMS = regex(rf"nvidia-headless-no-dkms-{_KIND}")
_BUILT = regex(r"nvidia-(kernel-|open-){0,2}dkms")  # packages whose modules DKMS builds
_KERNELS = regex(r"linux-image-(?!\d|unsigned-|extra-).+")  # the meta-packages that provide each new kernel


def built_by_dkms(host: HostFacts) -> bool:
    """Whether a package is there whose modules DKMS builds for every kernel."""
    return any(_BUILT.match(name) for name in _there(host))


def signed_kind(host: HostFacts) -> str | None:
    """ "595-server-open": of linux-modules-nvidia-595-server-open-generic, whose modules the driver has.

    None where it has others. Ubuntu's names of a driver do not say: ubuntu-drivers puts nvidia-driver-580-open next to
    signed modules, and nvidia-headless-580, which depends on nvidia-headless-no-dkms-580, brings nvidia-dkms-580.
    """
    lead = lead_package(host)
    if lead is None or built_by_dkms(host):
        return None
    branch = (installed_version(host) or "")[:3]
    kinds = sorted({m.group(1) for m in map(_MODULES.fullmatch, _there(host)) if m and m.group(1)[:3] == branch})
    alone = _NO_DKMS.fullmatch(lead)  # Ubuntu has no other modules for it
    own = alone.group(1) if alone else lead.removeprefix("nvidia-driver-")
    return own if alone or own in kinds else next(iter(kinds), None)


def modules_of(kind: str, kernel: str) -> str:
    """The package of that driver's modules for a kernel's release, or for each kernel of a meta-package ("generic")."""
    return f"{SIGNED_MODULES}{kind}-{kernel}"


def pins_against_modules(host: HostFacts) -> tuple[str, ...]:
    """Pinned packages of the driver, with which the next kernel comes without its modules; () where none is to fear.

    Modules want the version of the driver that they were built with: linux-modules-nvidia-515-server-5.15.0-56-generic
    depends on nvidia-kernel-common-515-server (<= 515.86.01-1), (>= 515.86.01), and the kernel's own package on none of
    them. So apt keeps the modules back and installs the kernel. A kernel that is pinned as well does not go ahead.
    """
    held = host.packages.held
    if signed_kind(host) is None or any(_KERNELS.fullmatch(name) for name in held):
        return ()
    return tuple(sorted(name for name in held if is_driver(name)))


def _there(host: HostFacts) -> list[str]:
    return [name for name, package in host.packages.installed.items() if package.status[:1] in "ih"]
