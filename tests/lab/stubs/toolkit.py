"""The container toolkit's four packages."""

from __future__ import annotations

from collections.abc import Iterator

from .deb import File, Package
from .driver import LIBRARIES, UNITS, text
from .elf import shared_object

VERSIONS = ("1.19.1", "1.20.1")
CONFIG = "/etc/nvidia-container-runtime/config.toml"


def packages() -> Iterator[Package]:
    for version in VERSIONS:
        yield from release(version)


def release(version: str) -> Iterator[Package]:
    """All packages of one version."""
    full = f"{version}-1"
    yield Package(
        "libnvidia-container1",
        full,
        section="libs",
        postinst="ldconfig",
        postrm="ldconfig",
        files={f"{LIBRARIES}/libnvidia-container.so.{version}": File(shared_object("libnvidia-container.so.1"))},
        links={f"{LIBRARIES}/libnvidia-container.so.1": f"libnvidia-container.so.{version}"},
    )
    yield Package(
        "libnvidia-container-tools",
        full,
        depends=(f"libnvidia-container1 (>= {full})",),
        files={"/usr/bin/nvidia-container-cli": File(text("nvidia-container-cli", version), 0o755)},
    )
    yield _base(version)
    yield Package(
        "nvidia-container-toolkit",
        full,
        depends=(f"nvidia-container-toolkit-base (= {full})", f"libnvidia-container-tools (= {full})"),
        files={"/usr/bin/nvidia-container-runtime-hook": File(text("nvidia-container-runtime-hook"), 0o755)},
    )


def _base(version: str) -> Package:
    units = "nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
    refresh = f"systemctl daemon-reload || true\nsystemctl enable {units} || true\nsystemctl start {units} || true"
    return Package(
        "nvidia-container-toolkit-base",
        f"{version}-1",
        postinst=refresh,
        conffiles=(CONFIG,),
        files={
            "/usr/bin/nvidia-container-runtime": File(text("nvidia-container-runtime"), 0o755),
            "/usr/bin/nvidia-ctk": File(text("nvidia-ctk", version), 0o755),
            "/usr/bin/nvidia-cdi-hook": File(text("nvidia-container-runtime-hook"), 0o755),
            CONFIG: File(text("config.toml")),
            f"{UNITS}/nvidia-cdi-refresh.service": File(text("nvidia-cdi-refresh.service")),
            f"{UNITS}/nvidia-cdi-refresh.path": File(text("nvidia-cdi-refresh.path")),
        },
        prerm=f'[ "$1" != remove ] || systemctl disable --now {units} || true',
    )
