"""The daemon of MPS, without which the plugin gives no GPU that is shared by MPS."""

from __future__ import annotations

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_configmap import config_mount
from gpunode.kubernetes.plugin_container import CONFIG_FILE, Mount, mps_mounts
from gpunode.kubernetes.plugin_groups import ACCOUNT, chooser_mounts, first_choice
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_pods import Cluster, daemonset

NAME = "nvidia-device-plugin-mps-control-daemon"
# Of gpu-feature-discovery; without it a person labels the nodes.
CAPABLE = "nvidia.com/mps.capable"


def mps_daemonset(plugin: Plugin, cluster: Cluster) -> Object:
    mounts = [*mps_mounts(plugin), *(chooser_mounts() if plugin.grouped else [config_mount()])]
    chosen = [first_choice(plugin)] if plugin.grouped else []
    spec: dict[str, object] = {
        "hostPID": True,  # MPS finds itself in /proc by the number that the driver knows
        **({"serviceAccountName": ACCOUNT} if plugin.grouped else {}),
        "nodeSelector": {CAPABLE: "true"},
        "initContainers": [_shared_memory(plugin, mounts[0]), *chosen],
        "containers": [_daemon(plugin, mounts)],
        "volumes": [one.volume for one in mounts],
    }
    return daemonset(NAME, {"name": NAME}, spec, cluster)


def _shared_memory(plugin: Plugin, root: Mount) -> Object:
    return {
        "name": "mps-control-daemon-mounts",
        "image": plugin.release.image,
        "command": ["mps-control-daemon", "mount-shm"],
        "securityContext": {"privileged": True},
        "volumeMounts": [{**root.mount, "mountPropagation": "Bidirectional"}],
    }


def _daemon(plugin: Plugin, mounts: list[Mount]) -> Object:
    return {
        "name": "mps-control-daemon-ctr",
        "image": plugin.release.image,
        "command": ["mps-control-daemon"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CONFIG_FILE", "value": CONFIG_FILE},
        ],
        "securityContext": {"privileged": True},
        "volumeMounts": [one.mount for one in mounts],
    }
