"""NVIDIA's device plugin as a DaemonSet without Helm: what deployments/static has in NVIDIA's own repository."""

from __future__ import annotations

from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.kubernetes.documents import Object

NAME = "nvidia-device-plugin-daemonset"
NAMESPACE = "kube-system"
LABELS = {"name": "nvidia-device-plugin-ds"}
KUBELET = "/var/lib/kubelet/device-plugins"


def plugin_daemonset(release: PluginRelease) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": LABELS}, "spec": _pod(release)},
        },
    }


def _pod(release: PluginRelease) -> Object:
    volume = "kubelet-device-plugins-dir"
    return {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "priorityClassName": "system-node-critical",
        "containers": [
            {
                "name": "nvidia-device-plugin-ctr",
                "image": release.image,
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": volume, "mountPath": KUBELET}],
            }
        ],
        "volumes": [{"name": volume, "hostPath": {"path": KUBELET, "type": "Directory"}}],
    }
