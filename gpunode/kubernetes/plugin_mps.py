"""The daemon of MPS, without which the plugin gives no GPU that is shared by MPS."""

from __future__ import annotations

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_configmap import config_mount
from gpunode.kubernetes.plugin_container import CONFIG_FILE, Mount, mps_mounts
from gpunode.kubernetes.plugin_groups import ACCOUNT, chooser_mounts, first_choice, later_choices
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_pods import Cluster, daemonset

NAME = "nvidia-device-plugin-mps-control-daemon"
PROCESS = "mps-control-daemon"  # the first word of its command line; the chart's sidecar looks for a path, and ends
# Among a host's processes config-manager panicked at the first thread of the kernel, whose command line is empty.
SIGNALS_SINCE = (0, 20)
PRIVILEGED: Object = {"privileged": True}
# Of gpu-feature-discovery; without it a person labels the nodes.
CAPABLE = "nvidia.com/mps.capable"


def mps_daemonset(plugin: Plugin, cluster: Cluster) -> Object:
    mounts = [*mps_mounts(plugin), *(chooser_mounts() if plugin.grouped else [config_mount()])]
    chosen = [first_choice(plugin)] if plugin.grouped else []
    choosing = [later_choices(plugin, f"{PROCESS}-sidecar", PROCESS, PRIVILEGED)] if follows_label(plugin) else []
    spec: dict[str, object] = {
        "hostPID": True,  # MPS finds itself in /proc by the number that the driver knows
        **({"serviceAccountName": ACCOUNT} if plugin.grouped else {}),
        "nodeSelector": {CAPABLE: "true"},
        "initContainers": [_shared_memory(plugin, mounts[0]), *chosen],
        "containers": [*choosing, _daemon(plugin, mounts)],
        "volumes": [one.volume for one in mounts],
    }
    return daemonset(NAME, {"name": NAME}, spec, cluster)


def follows_label(plugin: Plugin) -> bool:
    """Whether the daemon learns of a node's label that changes while it runs."""
    return plugin.grouped and plugin.release.numbers >= SIGNALS_SINCE


def _shared_memory(plugin: Plugin, root: Mount) -> Object:
    return {
        "name": f"{PROCESS}-mounts",
        "image": plugin.release.image,
        "command": [PROCESS, "mount-shm"],
        "securityContext": PRIVILEGED,
        "volumeMounts": [{**root.mount, "mountPropagation": "Bidirectional"}],
    }


def _daemon(plugin: Plugin, mounts: list[Mount]) -> Object:
    return {
        "name": f"{PROCESS}-ctr",
        "image": plugin.release.image,
        "command": [PROCESS],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CONFIG_FILE", "value": CONFIG_FILE},
        ],
        "securityContext": PRIVILEGED,
        "volumeMounts": [one.mount for one in mounts],
    }
