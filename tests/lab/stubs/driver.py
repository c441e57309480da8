"""The driver's packages, named as in the CUDA repository for Debian."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .deb import File, Package
from .elf import shared_object

VERSIONS = ("580.178.04", "595.58.03", "595.91.07")
BRANCHES = ("580", "595")
FILES = Path(__file__).with_name("files")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
UNITS = "/usr/lib/systemd/system"


def packages() -> Iterator[Package]:
    for version in VERSIONS:
        yield from release(version)
    for pinned in (*BRANCHES, *VERSIONS):
        yield _pinning(pinned)


def text(name: str, version: str = "") -> bytes:
    """A stub's source with its version filled in."""
    return (FILES / name).read_text().replace("@VERSION@", version).encode()


def release(version: str) -> Iterator[Package]:
    """All packages of one version."""
    full = f"{version}-1"
    compute = (f"nvidia-driver-cuda (= {full})", f"nvidia-persistenced (= {full})")
    yield _kernel_module("nvidia-kernel-open-dkms", "open", version)
    yield _kernel_module("nvidia-kernel-dkms", "proprietary", version)
    yield _library("libcuda1", "libcuda", version)
    yield _library("libnvidia-ml1", "libnvidia-ml", version)
    yield Package("nvidia-modprobe", full, files={"/usr/bin/nvidia-modprobe": File(text("nvidia-modprobe"), 0o4755)})
    yield Package(
        "nvidia-driver-cuda",
        full,
        files={"/usr/bin/nvidia-smi": File(text("nvidia-smi", version), 0o755)},
        depends=(f"libcuda1 (= {full})", f"libnvidia-ml1 (= {full})", f"nvidia-modprobe (= {full})"),
    )
    yield _persistenced(version)
    yield _fabric_manager(version)
    yield _library("libnvidia-nscq", "libnvidia-nscq", version, major="2")
    yield Package("nvidia-imex", full, files={"/usr/bin/nvidia-imex": File(b"#!/bin/sh\nexit 0\n", 0o755)})
    yield Package("nvidia-open", full, depends=(f"nvidia-kernel-open-dkms (= {full})", *compute))
    yield Package("cuda-drivers", full, depends=(f"nvidia-kernel-dkms (= {full})", *compute))


def _kernel_module(name: str, flavour: str, version: str) -> Package:
    other = {"open": "nvidia-kernel-dkms", "proprietary": "nvidia-kernel-open-dkms"}[flavour]
    source = f"/usr/src/nvidia-{version}"
    return Package(
        name,
        f"{version}-1",
        depends=("dkms",),
        conflicts=(other,),
        files={
            f"{source}/dkms.conf": File(
                f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\nAUTOINSTALL="yes"\n'.encode()
            ),
            f"{source}/flavour": File(f"{flavour}\n".encode()),
        },
        # As dh_dkms does it: a failed build fails the package, missing headers do not.
        postinst=f"dkms build-and-install nvidia/{version}",
        prerm=f"dkms remove nvidia/{version} --all || true",
    )


def _library(package: str, library: str, version: str, major: str = "1") -> Package:
    soname = f"{library}.so.{major}"
    return Package(
        package,
        f"{version}-1",
        section="libs",
        postinst="ldconfig",
        postrm="ldconfig",
        files={f"{LIBRARIES}/{library}.so.{version}": File(shared_object(soname))},
        links={f"{LIBRARIES}/{soname}": f"{library}.so.{version}"},
    )


def _persistenced(version: str) -> Package:
    start = (
        "systemctl daemon-reload || true\nsystemctl enable nvidia-persistenced.service || true\n"
        "systemctl restart nvidia-persistenced.service || true"
    )
    return Package(
        "nvidia-persistenced",
        f"{version}-1",
        postinst=start,
        files={
            "/usr/bin/nvidia-persistenced": File(text("nvidia-persistenced", version), 0o755),
            f"{UNITS}/nvidia-persistenced.service": File(text("nvidia-persistenced.service")),
        },
        prerm='[ "$1" != remove ] || systemctl disable --now nvidia-persistenced.service || true',
    )


def _fabric_manager(version: str) -> Package:
    """Installed but not enabled, as NVIDIA's: NVSwitch machines need it started."""
    return Package(
        "nvidia-fabricmanager",
        f"{version}-1",
        postinst="systemctl daemon-reload || true",
        files={
            "/usr/bin/nv-fabricmanager": File(text("nv-fabricmanager", version), 0o755),
            f"{UNITS}/nvidia-fabricmanager.service": File(text("nvidia-fabricmanager.service")),
            "/usr/share/nvidia/nvswitch/fabricmanager.cfg": File(b"FABRIC_MODE=0\n"),
        },
        prerm='[ "$1" != remove ] || systemctl disable --now nvidia-fabricmanager.service || true',
    )


def _pinning(pinned: str) -> Package:
    """`nvidia-driver-pinning-595` holds a branch, `nvidia-driver-pinning-595.58.03` one release."""
    version = f"{pinned}-1"
    pattern = f"{pinned}-1" if "." in pinned else f"{pinned}.*"
    names = "nvidia-* libnvidia-* libcuda1 cuda-drivers"
    preferences = f"Package: {names}\nPin: version {pattern}\nPin-Priority: 1001\n"
    name = f"nvidia-driver-pinning-{pinned}"
    # apt_preferences(5): a file with an extension other than "pref" is ignored, and ".03" would be one.
    path = f"/etc/apt/preferences.d/{name}{'.pref' if '.' in pinned else ''}"
    return Package(
        name,
        version,
        architecture="all",
        provides=("nvidia-driver-pinning",),
        conflicts=("nvidia-driver-pinning",),
        files={path: File(preferences.encode())},
        conffiles=(path,),
    )
