"""What Arch Linux' extra repository brings: drivers and the toolkit under its own names, one version of each."""

from __future__ import annotations

import os
from dataclasses import replace

from . import driver, toolkit
from .deb import File, Package
from .driver import text


def packages(version: str, toolkit_version: str) -> list[Package]:
    """One state of the repository."""
    stubs = {p.name: p for p in (*driver.release(version), *toolkit.release(toolkit_version))}
    full, kernel = f"{version}-1", os.uname().release
    utils = _merged(
        "nvidia-utils",
        full,
        [
            stubs[n]
            for n in ("libcuda1", "libnvidia-ml1", "nvidia-modprobe", "nvidia-driver-cuda", "nvidia-persistenced")
        ],
    )
    tree = f"/usr/lib/modules/{kernel}/build"
    return [
        Package("dkms", "3.2.2-1", files={"/usr/sbin/dkms": File(text("dkms"), 0o755)}),
        Package("linux-headers", "6.18.1.arch1-1", files={f"{tree}/Makefile": File(b"# lab stub\n")}),
        utils,
        replace(
            stubs["nvidia-kernel-open-dkms"],
            name="nvidia-open-dkms",
            version=full,
            depends=("dkms", f"nvidia-utils={version}"),
            conflicts=(),
            provides=("NVIDIA-MODULE",),
        ),
        replace(stubs["libnvidia-container1"], name="libnvidia-container", version=f"{toolkit_version}-1", depends=()),
        _merged(
            "nvidia-container-toolkit",
            f"{toolkit_version}-1",
            [
                stubs[n]
                for n in ("nvidia-container-toolkit-base", "libnvidia-container-tools", "nvidia-container-toolkit")
            ],
            (f"libnvidia-container>={toolkit_version}",),
        ),
        *(Package(name, "1-1") for name in ("gnupg", "curl", "ca-certificates")),
    ]


def _merged(name: str, version: str, stubs: list[Package], depends: tuple[str, ...] = ()) -> Package:
    """Several of NVIDIA's packages as the one that Arch makes of them."""
    files = {path: file for stub in stubs for path, file in stub.files.items()}
    links = {path: target for stub in stubs for path, target in stub.links.items()}
    conffiles = tuple(path for stub in stubs for path in stub.conffiles)
    scripts = "\n".join(stub.postinst for stub in stubs if stub.postinst)
    prerm = "\n".join(stub.prerm.replace('[ "$1" != remove ] || ', "") for stub in stubs if stub.prerm)
    return Package(name, version, depends, files=files, links=links, postinst=scripts, prerm=prerm, conffiles=conffiles)
