"""NVIDIA's device plugin without Helm: a DaemonSet and what it needs, for the release of a cluster."""

from __future__ import annotations

from gpunode.kubernetes.api_versions import runtime_class
from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_configmap import config_map, config_mount
from gpunode.kubernetes.plugin_container import mounts, plugin_container, rights
from gpunode.kubernetes.plugin_groups import ACCOUNT, access, chooser_mounts, first_choice, later_choices
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_mps import mps_daemonset
from gpunode.kubernetes.plugin_pods import NAMESPACE, Cluster, daemonset

NAME = "nvidia-device-plugin-daemonset"
LABELS = {"name": "nvidia-device-plugin-ds"}
PROCESS = "nvidia-device-plugin"  # as the image starts it
HANDLER = "nvidia"  # of the engine, as gpunode sets it up


def plugin_objects(plugin: Plugin, spelling: str, cluster: Cluster) -> list[Object]:
    """In the order in which they are to be there. Raises UsageError where spelling or release cannot say something."""
    objects: list[Object] = []
    if cluster.runtime_class:
        objects.append(runtime_class(cluster.runtime_class, HANDLER, cluster.release))
    if spelling == "config":
        objects.append(config_map(plugin, NAMESPACE))
    if plugin.grouped:
        objects += access(NAMESPACE)
    objects.append(daemonset(NAME, LABELS, _pod(plugin, spelling), cluster))
    if plugin.any("mps"):
        objects.append(mps_daemonset(plugin, cluster))
    return objects


def _pod(plugin: Plugin, spelling: str) -> Object:
    container, mounted = plugin_container(plugin, spelling), [*mounts(plugin)]
    if plugin.grouped:
        mounted += chooser_mounts()
    elif spelling == "config":
        mounted.append(config_mount())
    whole = {**container, "volumeMounts": [one.mount for one in mounted]}
    volumes = {"volumes": [one.volume for one in mounted]}
    if not plugin.grouped:
        return {"containers": [whole], **volumes}
    sidecar = later_choices(plugin, f"{PROCESS}-sidecar", PROCESS, rights(plugin))
    return {
        "serviceAccountName": ACCOUNT,
        "shareProcessNamespace": True,
        "initContainers": [first_choice(plugin)],
        "containers": [sidecar, whole],
        **volumes,
    }
