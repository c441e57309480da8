"""The images that hosts start from: which overlay layers a host needs, and whether they are built."""

from __future__ import annotations

from pathlib import Path

from tests.lab.storage import cache

SUITES = {"debian12": "bookworm", "debian13": "trixie", "debian-sid": "sid"}
RUNTIMES = ("docker", "containerd", "podman", "rootless")
# The distributions with a layer of these; build.sh has their suites.
PODMAN = ("debian13",)
ROOTLESS = ("debian13",)
BUILD = Path(__file__).with_name("build.sh")
# Kubernetes 1.20.2 (kubernetes.sh): layers to be put above those of debian12, for nodes and for the control plane.
KUBERNETES = cache() / "base" / "bookworm-kubernetes"
CONTROL_PLANE = cache() / "base" / "bookworm-control-plane"
BUILD_KUBERNETES = Path(__file__).with_name("kubernetes.sh")
# Other families: the package managers that Debian carries, in a layer of their own (tests/lab/foreign.py).
FOREIGN = {"el9": "sid", "fedora42": "sid", "sles15": "sid", "arch": "sid"}
# Debian with the userland of Ubuntu 25.10 and later: sudo-rs, uutils' coreutils, dracut (build.sh: install_2026).
USERLAND_2026 = {"debian13-2026": "trixie", "debian-sid-2026": "sid"}
# A layer for each of SUITES, to be put above the one with docker: cloud-init.
CLOUD = {name: cache() / "base" / f"{suite}-cloud" for name, suite in SUITES.items()}
# The same: mkosi 14, 25.3 and 27.1.
MKOSI = {name: cache() / "base" / f"{suite}-mkosi" for name, suite in SUITES.items()}
DOAS = {"debian13-doas": "trixie"}  # doas in sudo's place
ON_DOCKER = {**USERLAND_2026, **DOAS}  # layers on the one with docker; their names end as their distributions' do
EVERY = {**SUITES, **FOREIGN, **ON_DOCKER}


def layers(distribution: str, runtime: str | None) -> tuple[Path, ...]:
    """Overlay lower directories, topmost first. Both daemons come from one layer; the host enables what it wants."""
    base = cache() / "base" / suite(distribution)
    if distribution in FOREIGN:
        if runtime is not None:
            raise ValueError(f"{distribution} has package managers and no {runtime}")
        return (base.with_name(f"{base.name}-managers"), base)
    if distribution in ON_DOCKER:
        if runtime not in (None, "docker", "containerd"):
            raise ValueError(f"{distribution} has docker and containerd, and no {runtime}")
        layer = f"{base.name}-{distribution.rpartition('-')[2]}"
        return (base.with_name(layer), base.with_name(f"{base.name}-docker"), base)
    if runtime is None:
        return (base,)
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime {runtime!r} is not one of {', '.join(RUNTIMES)}")
    if runtime == "podman" and distribution not in PODMAN:
        raise ValueError(f"podman is built for {', '.join(PODMAN)} only")
    if runtime == "rootless":
        if distribution not in ROOTLESS:
            raise ValueError(f"rootless docker is built for {', '.join(ROOTLESS)} only")
        return (base.with_name(f"{base.name}-rootless"), base.with_name(f"{base.name}-docker"), base)
    return (base.with_name(f"{base.name}-{'podman' if runtime == 'podman' else 'docker'}"), base)


def suite(distribution: str) -> str:
    try:
        return EVERY[distribution]
    except KeyError:
        raise ValueError(f"{distribution!r} is not one of {', '.join(EVERY)}") from None


def kubernetes_is_built() -> bool:
    return (KUBERNETES / ".done").exists()


def is_built(distribution: str) -> bool:
    if distribution in FOREIGN or distribution in ON_DOCKER:
        return all((layer / ".done").exists() for layer in layers(distribution, None))
    runtimes = ["docker"]
    runtimes += ["podman"] if distribution in PODMAN else []
    runtimes += ["rootless"] if distribution in ROOTLESS else []
    return all((layer / ".done").exists() for runtime in runtimes for layer in layers(distribution, runtime))
