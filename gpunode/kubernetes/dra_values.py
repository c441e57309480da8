"""Values of the chart dra-driver-nvidia-gpu for nodes that gpunode prepared, and what speaks against such a node.

Each of these values is in values.yaml of the chart's v0.4.1, and of its main branch of 2026-08-07 (0.5.0-dev); the tag
v0.5.0 itself was not read. Its templates/validation.yaml refuses GPUs without gpuResourcesEnabledOverride.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpunode.catalog import dra
from gpunode.catalog.load import Catalog
from gpunode.kubernetes.documents import Object
from gpunode.model.facts import HostFacts, RuntimeFacts, ServiceFacts
from gpunode.model.kubelet_program import kubelet_version
from gpunode.values import dataclass

CHART, VERSION, NAMESPACE = "dra-driver-nvidia-gpu", "0.5.0", "dra-driver-nvidia-gpu"
REGISTRY = f"oci://registry.k8s.io/dra-driver-nvidia/charts/{CHART}"
HEAD = (
    f"Values of the chart {CHART}, for nodes whose driver is the host's own:\n"
    f"helm install {CHART} {REGISTRY} --version {VERSION} --create-namespace --namespace {NAMESPACE} -f FILE\n"
    "Its pods run on nodes with a label of Node Feature Discovery's, or with nvidia.com/gpu.present=true (gpunode k8s "
    "labels).\nNo device plugin may be on these nodes: gpuResourcesEnabledOverride says that you have seen to it."
)
KUBELET = "/var/lib/kubelet"


@dataclass(frozen=True)
class DraNode:
    """What the chart has to know of a node."""

    across_hosts: bool  # its GPUs share memory with those of other hosts: ComputeDomains
    kubelet: str  # the kubelet's directory, "/var/lib/kubelet"


def dra_node(host: HostFacts, catalog: Catalog) -> DraNode:
    plugins = host.kubernetes.device_plugins
    directory = plugins.root if plugins else None
    return DraNode(dra.shares_memory_with_hosts(host, catalog), directory or KUBELET)


def dra_values(*, compute_domains: bool, kubelet: str = KUBELET) -> Object:
    """`kubelet`: its directory on the nodes."""
    values: dict[str, object] = {
        "nvidiaDriverRoot": "/",
        "gpuResourcesEnabledOverride": True,
        "resources": {"gpus": {"enabled": True}, "computeDomains": {"enabled": compute_domains}},
    }
    if kubelet != KUBELET:
        values["kubeletPlugin"] = {
            "kubeletRegistrarDirectoryPath": f"{kubelet}/plugins_registry",
            "kubeletPluginsDirectoryPath": f"{kubelet}/plugins",
        }
    return values


def unfit_for_dra(host: HostFacts, catalog: Catalog, engines: Sequence[RuntimeFacts]) -> Iterator[str]:
    """Why pods on this node would get no GPU by DRA. Nothing for what is not known: `not_known_for_dra` has that.

    `engines`: those that may run the kubelet's pods.
    """
    across, version = dra.shares_memory_with_hosts(host, catalog), kubelet_version(host)
    if host.driver.container:
        yield "its driver is a container's (/run/nvidia/driver), not the host's: the operator has a DRA driver too"
    if (plugins := host.kubernetes.device_plugins) and plugins.here:
        yield "a device plugin gives out its GPUs: keep it off this node"
    if version and dra.refused_release(version):
        yield f"its kubelet is {version}, and the DRA driver is for {dra.releases()}"
    elif version and (lacks := dra.lacking_gate(version, host.kubernetes.settings)):
        yield f"its kubelet is {version}: {lacks}"
    if (loaded := host.driver.loaded) and not dra.drives(loaded, across_hosts=across):
        yield f"its driver is {loaded}, and {dra.least_driver(across_hosts=across)} or later is needed"
    for engine in engines:
        if engine.cdi is False:
            yield f"CDI is off in {engine.label}: gpunode setup --kubernetes-mode dra"
    imex = host.services.get(dra.IMEX) or ServiceFacts()
    if across and imex.active == "active":
        yield f"{dra.IMEX} runs, and ComputeDomains bring their own: gpunode setup --kubernetes-mode dra"


def not_known_for_dra(host: HostFacts, engines: Sequence[RuntimeFacts]) -> Sequence[str]:
    """What could not be held against it, so that silence is no promise."""
    version = kubelet_version(host)
    found = []
    if version is None:
        found.append(f"its kubelet's release is not known: the DRA driver is for {dra.releases()}")
    elif not dra.refused_release(version) and (documented := dra.before_documented(version)):
        found.append(f"its kubelet is {version}: {documented}")
    if host.driver.loaded is None:
        found.append("no driver is loaded: its version was not checked")
    if host.kubernetes.device_plugins is None:
        found.append("the kubelet's directory was not read: whether a device plugin is there was not checked")
    if not engines:
        found.append("no engine that speaks CRI is known to run: its CDI was not checked")
    return [*found, *(f"{one.label} did not say whether CDI is on" for one in engines if one.cdi is None)]
