"""The images that hosts start from: which overlay layers a host needs, and whether they are built."""

from __future__ import annotations

from pathlib import Path

from tests.lab.storage import cache

SUITES = {"debian12": "bookworm", "debian13": "trixie", "debian-sid": "sid"}
RUNTIMES = ("docker", "containerd")
BUILD = Path(__file__).with_name("build.sh")


def layers(distribution: str, runtime: str | None) -> tuple[Path, ...]:
    """Overlay lower directories, topmost first. Both runtimes come from one layer; the host enables what it wants."""
    base = cache() / "base" / suite(distribution)
    if runtime is None:
        return (base,)
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime {runtime!r} is not one of {', '.join(RUNTIMES)}")
    return (base.with_name(f"{base.name}-docker"), base)


def suite(distribution: str) -> str:
    try:
        return SUITES[distribution]
    except KeyError:
        raise ValueError(f"{distribution!r} is not one of {', '.join(SUITES)}") from None


def is_built(distribution: str) -> bool:
    return all((layer / ".done").exists() for layer in layers(distribution, "docker"))
