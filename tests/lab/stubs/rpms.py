"""NVIDIA's packages under their rpm names (RHEL and Fedora, SUSE), and what a distribution's own archive adds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from . import debian, driver, toolkit
from .deb import File, Package
from .driver import text

VERSIONS = driver.VERSIONS
SUSE_VERSIONS = ("580.95.05", "580.178.04", "580.196.07")  # the first has a known CVE
EPOCH = 3  # as NVIDIA's packages for RHEL have


def kernel_flavour() -> str:
    """What follows the second dash of `uname -r`, as SUSE and Ubuntu name their kernels."""
    return "-".join(os.uname().release.split("-")[2:]) or "default"


def red_hat(version: str) -> list[Package]:
    """One release in the CUDA repository for rhel9 and fedora."""
    full = f"= {EPOCH}:{version}-1"
    stubs = {p.name: p for p in driver.release(version)}
    compute = (f"nvidia-driver-cuda {full}", f"nvidia-persistenced {full}")
    return [
        _module("kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms", stubs["nvidia-kernel-open-dkms"], full),
        _module("kmod-nvidia-latest-dkms", "kmod-nvidia-open-dkms", stubs["nvidia-kernel-dkms"], full),
        _firmware("nvidia-kmod-common", version),
        _as("nvidia-driver-cuda-libs", stubs["libcuda1"]),
        _as("libnvidia-ml", stubs["libnvidia-ml1"]),
        _as("nvidia-modprobe", stubs["nvidia-modprobe"]),
        _as(
            "nvidia-driver-cuda",
            stubs["nvidia-driver-cuda"],
            (f"nvidia-driver-cuda-libs {full}", f"libnvidia-ml {full}", f"nvidia-modprobe {full}"),
        ),
        _as("nvidia-persistenced", stubs["nvidia-persistenced"]),
        _as("nvidia-fabricmanager", stubs["nvidia-fabricmanager"]),
        _as("nvidia-imex", stubs["nvidia-imex"]),
        Package("nvidia-open", f"{version}-1", depends=(f"kmod-nvidia-open-dkms {full}", *compute)),
        Package("cuda-drivers", f"{version}-1", depends=(f"kmod-nvidia-latest-dkms {full}", *compute)),
    ]


def suse(version: str) -> list[Package]:
    """One release in the CUDA repository for sles15: module packages that SUSE built, libraries at the same version."""
    generation = "G07" if version.startswith("59") else "G06"
    full = f"= {version}-1"
    stubs = {p.name: p for p in driver.release(version)}
    libraries = tuple(f"{name}-{generation} {full}" for name in ("nvidia-compute", "libnvidia-ml", "nvidia-modprobe"))
    return [
        _kernel_module_package(f"nvidia-open-driver-{generation}-signed-cuda-kmp-{kernel_flavour()}", version),
        _firmware(f"nvidia-common-{generation}", version),
        _as(f"nvidia-compute-{generation}", stubs["libcuda1"], (f"nvidia-common-{generation} {full}",)),
        _as(f"libnvidia-ml-{generation}", stubs["libnvidia-ml1"]),
        _as(f"nvidia-modprobe-{generation}", stubs["nvidia-modprobe"]),
        _as(
            f"nvidia-compute-utils-{generation}",
            stubs["nvidia-driver-cuda"],
            (*libraries, f"nvidia-persistenced {full}"),
        ),
        _as("nvidia-persistenced", stubs["nvidia-persistenced"]),
        _as("nvidia-fabricmanager", stubs["nvidia-fabricmanager"]),
    ]


def toolkit_release(version: str) -> list[Package]:
    full = f"= {version}-1"
    needs = {
        "libnvidia-container-tools": (f"libnvidia-container1 >= {version}-1",),
        "nvidia-container-toolkit": (f"nvidia-container-toolkit-base {full}", f"libnvidia-container-tools {full}"),
    }
    return [_as(p.name, p, needs.get(p.name, ())) for p in toolkit.release(version)]


def modules(versions: Sequence[str]) -> str:
    """modules.yaml: a stream for each branch and flavour, as the repository for rhel9 has them."""
    documents = []
    for branch in sorted({version[:3] for version in versions}):
        names = [f"{p.name}-{EPOCH}:{p.version}.x86_64" for v in versions if v.startswith(branch) for p in red_hat(v)]
        documents += [_stream(f"{branch}-{kind}", names) for kind in ("open", "dkms")]
    return "".join(documents)


def archive() -> Iterator[Package]:
    """What RHEL, EPEL, Fedora and SUSE bring themselves, under the names that are asked for."""
    kernel = os.uname().release
    tree = f"/usr/src/kernels/{kernel}"
    headers = {
        "files": {f"{tree}/Makefile": File(b"# lab stub\n")},
        "links": {f"/usr/lib/modules/{kernel}/build": tree},
    }
    yield Package(
        "dkms", debian.DKMS_VERSION.partition("-")[0] + "-1", files={"/usr/sbin/dkms": File(text("dkms"), 0o755)}
    )
    yield Package(
        "kernel-devel",
        "6.12.107-1",
        provides=(
            f"kernel-devel-{kernel}",
            f"kernel-devel-uname-r = {kernel.replace('-', '_')}",
            "kernel-default-devel",
        ),
        **headers,  # type: ignore[arg-type]
    )
    for name in ("kernel-devel-matched", "kernel-headers"):
        yield Package(name, "6.12.107-1")
    for name in ("epel-release", "dnf-plugins-core", "python3-dnf-plugin-versionlock", "curl", "gnupg2", "gpg2"):
        yield Package(name, "9-1")
    yield Package("ca-certificates", "2026-1")


def base() -> Package:
    """What says that an ordinary system is installed: rpm knows nothing of the Debian below it."""
    provides = ("/bin/sh", "/usr/bin/sh", "/bin/bash", "systemd", "system-release = 9", "kernel = 6.18", "glibc")
    return Package("lab-base", "1-1", provides=provides)


def _as(name: str, stub: Package, depends: tuple[str, ...] = (), **changes: object) -> Package:
    """A Debian stub's files and scripts under an rpm name."""
    fields: dict[str, object] = {
        "name": name,
        "version": stub.version,
        "depends": depends,
        "files": stub.files,
        "links": stub.links,
        "postinst": stub.postinst,
        # rpm says how many will be left (0: removal), dpkg says `remove`.
        "prerm": stub.prerm.replace('[ "$1" != remove ]', '[ "$1" != 0 ]'),
        "postrm": stub.postrm,
        "conffiles": stub.conffiles,
        **changes,
    }
    return Package(**fields)  # type: ignore[arg-type]


def _module(name: str, other: str, stub: Package, full: str) -> Package:
    prerm = f'[ "$1" != 0 ] || {stub.prerm}'
    return _as(name, stub, ("dkms", f"nvidia-kmod-common {full}"), conflicts=(other,), prerm=prerm)


def _kernel_module_package(name: str, version: str) -> Package:
    """Built by SUSE and signed: a file, and nothing to do at install."""
    text = f'NV_VERSION={version}\nNV_FLAVOUR=open\nNV_SIGNER="SUSE Linux Enterprise Secure Boot CA"\n'
    path = f"/usr/lib/modules/{os.uname().release}/updates/nvidia.ko"
    return Package(name, f"{version}_k6.4.0_150600.21-1", files={path: File(text.encode())})


def _firmware(name: str, version: str) -> Package:
    return Package(
        name, f"{version}-1", files={f"/usr/lib/firmware/nvidia/{version}/gsp_ga10x.bin": File(b"lab stub\n")}
    )


def _stream(name: str, packages: Sequence[str]) -> str:
    lines = "".join(f"    - {package}\n" for package in packages)
    return (
        "---\ndocument: modulemd\nversion: 2\ndata:\n"
        f'  name: nvidia-driver\n  stream: "{name}"\n  version: 20260101000000\n  context: 6ac4f8d2\n  arch: x86_64\n'
        "  summary: lab stub\n  description: lab stub\n  license:\n    module:\n    - MIT\n"
        f"  artifacts:\n    rpms:\n{lines}...\n"
    )
