"""What NVIDIA's DRA driver asks of a node, for planner, checks and what is printed alike."""

from __future__ import annotations

from gpunode.catalog.load import Catalog
from gpunode.catalog.versions import first_with, thresholds
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import KubeletSettings
from gpunode.model.versions import at_least

GATE = "DynamicResourceAllocation"
IMEX = "nvidia-imex.service"


def shares_memory_with_hosts(host: HostFacts, catalog: Catalog) -> bool:
    """Its GPUs sit on a fabric that joins hosts (GB200, GB300): there ComputeDomains are what DRA is used for."""
    return any(catalog.gpu_model(gpu.device).fabric == "imex" for gpu in host.own_gpus)


def least_driver(*, across_hosts: bool) -> str:
    """ "565", or "570.158.01" where ComputeDomains are used."""
    return thresholds()["driver", "compute-domains" if across_hosts else "dra"].since


def drives(version: str, *, across_hosts: bool) -> bool:
    """Whether this version of NVIDIA's driver will do."""
    least = first_with("driver", "compute-domains") if across_hosts else first_with("driver", "dra")
    return at_least(version, least)


def newer_branch(catalog: Catalog, *, across_hosts: bool) -> str:
    """The oldest branch with long support that will do: "580"."""
    least = int(least_driver(across_hosts=across_hosts).partition(".")[0])
    fit = (one.number for one in catalog.branches if one.number >= least and one.kind == "lts")
    return str(min(fit, default=least))


def releases() -> str:
    """Of Kubernetes, for a message."""
    return (
        f"Kubernetes {_since('dra')} or later; from {_since('dra-beta')} to before {_since('dra-on')} with the feature "
        f"gate {GATE} and the API group resource.k8s.io switched on"
    )


def refused_release(version: str) -> bool:
    """There is no DRA in this release that the driver's chart could be installed with."""
    return not at_least(version, first_with("kubelet", "dra-beta"))


def on_by_default(version: str) -> bool:
    """A kubelet of this release does DRA unless it is told not to."""
    return at_least(version, first_with("kubelet", "dra-on"))


def documented_release() -> str:
    """ "1.34.2" """
    return _since("dra")


def switched_on_where() -> str:
    """What a cluster of a release before that has to be told."""
    return (
        f"set {GATE}=true in kubelet, apiserver, scheduler and controller-manager, and resource.k8s.io in the "
        "apiserver's --runtime-config"
    )


def lacking_gate(version: str, settings: KubeletSettings | None) -> str | None:
    """What a kubelet of this release has to be told, and is not, before it does any DRA; None: nothing known."""
    gate = settings.gates.get(GATE) if settings else None
    if gate is None and (settings is None or settings.unread):
        return None
    if on_by_default(version):
        return f"it has {GATE}=false ({gate.where})" if gate is not None and not gate.on else None
    return None if gate is not None and gate.on else f"it has no {GATE}=true"


def before_documented(version: str) -> str | None:
    """Why it is not certain that it works with this release; None: it is documented to."""
    if at_least(version, first_with("kubelet", "dra")):
        return None
    if on_by_default(version):
        return f"the DRA driver is documented for {documented_release()} or later"
    others = "apiserver (with resource.k8s.io in --runtime-config), scheduler and controller-manager"
    return f"{others} need {GATE}=true too"


def _since(feature: str) -> str:
    return thresholds()["kubelet", feature].since
