"""What on a host says that it is a node for GPUs, whether or not a GPU is there."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.checks.registry import Context
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.installed import signs_of_driver

# By HostFacts.platform: their GPU is no PCI function.
OTHER_BUS = {"wsl": "WSL has its GPU at /dev/dxg", "l4t": "the GPU of a Jetson is part of its processor"}


def not_on_pci(host: HostFacts) -> str | None:
    """Why no GPU of this host stands on a PCI bus that is here to be read; None: it would be there."""
    if host.init == "chroot":
        return "an image that is being built has no GPU"
    why = OTHER_BUS.get(host.platform or "")
    return f"{why}, not on the PCI bus" if why else None


def signs_of_gpu_node(host: HostFacts, context: Context) -> tuple[str, ...]:
    """What gives the host away as one, each as evidence; () where nothing does.

    Configuration that a removed package left behind ("rc") says only what the host once was.
    """
    return (*_asked(context), *_of_driver(host), *_of_toolkit(host, context.handler), *_of_journal(host))


def _asked(context: Context) -> Iterator[str]:
    spec = context.spec
    if spec is None:
        return
    if spec.driver.kind in ("branch", "exact"):
        yield f"the spec asks for driver {spec.driver}"
    if spec.mig:
        yield f"the spec asks for MIG {spec.mig[0]}"


def _of_driver(host: HostFacts) -> Iterator[str]:
    driver = host.driver
    if driver.loaded is not None:
        yield f"the nvidia module {driver.loaded} is loaded"
    yield from signs_of_driver(host)
    if driver.container:
        yield "/run/nvidia/driver is there (a driver container)"


def _of_toolkit(host: HostFacts, handler: str) -> Iterator[str]:
    if host.toolkit.version:
        yield f"NVIDIA Container Toolkit {host.toolkit.version} is installed"
    if host.toolkit.operator:
        yield f"{host.toolkit.operator} is there (the GPU Operator's toolkit)"
    yield from (f"{engine.label} has the handler {handler}" for engine in host.runtimes if _has(engine, handler))


def _has(engine: RuntimeFacts, handler: str) -> bool:
    return handler in engine.handlers or engine.effective_default == handler


def _of_journal(host: HostFacts) -> Iterator[str]:
    """Packages in it are no sign: an undo that removed them leaves their names there."""
    if host.journal.defaults:
        yield f"gpunode's journal: it configured {min(host.journal.defaults)}, and no undo restored it"
