"""What a node cannot be together with a mode of Kubernetes: refused before anything is planned."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.catalog import dra
from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.driver import DriverChoice
from gpunode.model.facts import HostFacts
from gpunode.model.installed import installed_version
from gpunode.model.kubernetes import GPU_DRA_DRIVER, DevicePlugins
from gpunode.model.spec import Spec
from gpunode.planner.engines.kubelet.daemon import kubelet_of
from gpunode.remedy import Remedy, RepairAction, setup

PLUGIN_STAYS = "--kubernetes-mode", "device-plugin"


def refuse_mode(host: HostFacts, spec: Spec) -> None:
    """Raises UnsupportedHost where the other way of giving out GPUs is there, or this release has no DRA."""
    if "kubernetes" not in spec.only or spec.kubernetes.mode is None:
        return
    plugins = host.kubernetes.device_plugins or DevicePlugins("")
    if spec.kubernetes.mode == "device-plugin":
        if GPU_DRA_DRIVER in plugins.dra:
            seen = f"plugins_registry of the kubelet has {GPU_DRA_DRIVER}"
            raise _other(host, "a DRA driver", seen, "a device plugin", "resources.gpus.enabled=false of its chart")
        return
    if plugins.here:
        raise _other(host, "a device plugin", _seen(plugins), "a DRA driver", "its DaemonSet's node selector")
    kubelet = kubelet_of(host)
    if kubelet is not None and dra.refused_release(kubelet.version):
        raise UnsupportedHost(
            f"{host.hostname}: {kubelet} has no DRA that NVIDIA's driver works with",
            evidence=f"it works with {dra.releases()}",
            remedy=Remedy(
                RepairAction.UPGRADE, "upgrade the cluster, or leave it to the device plugin: ", setup(*PLUGIN_STAYS)
            ),
        )


def _seen(plugins: DevicePlugins) -> str:
    what = [
        *(f"socket {name}" for name in sorted(plugins.sockets)),
        *(f"{name} × {len(ids)}" for name, ids in sorted(plugins.resources.items()) if ids),
        *(f"pod {pod.pod}" for pod in plugins.plugin_pods),
        *(f"process {pid}" for pid in plugins.processes),
    ]
    return f"{plugins.directory}, /var/log/pods and processes: {listing(what)}"


def _other(host: HostFacts, there: str, seen: str, wanted: str, switch: str) -> UnsupportedHost:
    return UnsupportedHost(
        f"{host.hostname}: {there} gives out this node's GPUs, and {wanted} is wanted",
        evidence=f"{seen}; neither knows what the other gave away",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"drain the node and keep off it what is there ({switch}), then ",
            setup(),
            " again; or ask for what is there",
        ),
    )


def refuse_old_driver(host: HostFacts, spec: Spec, catalog: Catalog, choice: DriverChoice | None) -> None:
    """Raises UnsupportedHost for a driver that the DRA driver does not work with: the chosen one, else the host's."""
    if spec.kubernetes.mode != "dra" or not {"driver", "kubernetes"} & set(spec.only):
        return
    across = dra.shares_memory_with_hosts(host, catalog)
    version = _version(host, choice)
    if version is None or dra.drives(version, across_hosts=across):
        return
    least = dra.least_driver(across_hosts=across)
    raise UnsupportedHost(
        f"{host.hostname}: NVIDIA's DRA driver needs driver {least} or later, and {version} is older",
        evidence=f"{least} is for {'ComputeDomains, which these boards are for' if across else 'GPUs'} "
        "(the DRA driver's prerequisites)",
        remedy=Remedy(
            RepairAction.UPGRADE,
            setup("--driver", dra.newer_branch(catalog, across_hosts=across)),
            ", where it supports these GPUs; or leave them to the device plugin: ",
            setup(*PLUGIN_STAYS),
        ),
    )


def _version(host: HostFacts, choice: DriverChoice | None) -> str | None:
    """None: not known. Of a branch its newest release is installed."""
    if choice is not None:
        return choice.version or choice.newest_known or str(choice.branch) + ".0"
    return host.driver.loaded or host.driver.installed or installed_version(host)
