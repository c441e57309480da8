"""Groups of nodes with a config of their own: a node's label names the key of the ConfigMap that counts there.

config-manager, which is in the plugin's image, reads the label before the plugin starts and whenever it changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_configmap import NAME as CONFIG_MAP
from gpunode.kubernetes.plugin_container import CONFIG_FILE, Mount
from gpunode.kubernetes.plugin_model import Plugin

LABEL = "nvidia.com/device-plugin.config"
ACCOUNT = "nvidia-device-plugin"
RBAC = "rbac.authorization.k8s.io"
SIGHUP = "1"


def chooser_mounts() -> Sequence[Mount]:
    return (
        Mount("available-configs", "/available-configs", {"configMap": {"name": CONFIG_MAP}}),
        Mount("config", "/config", {"emptyDir": {}}),
    )


def first_choice(plugin: Plugin) -> Object:
    """Before the plugin starts."""
    return _manager(plugin, "nvidia-device-plugin-init", None)


def later_choices(plugin: Plugin, name: str, process: str, rights: Object) -> Object:
    """Beside a process, which it tells to read its config again; for that the pod's processes see each other.

    `process` is the first word of its command line, to the letter; `rights` are its own: under AppArmor and SELinux
    a confined container cannot signal a privileged one.
    """
    return {**_manager(plugin, name, process), "securityContext": rights}


def _manager(plugin: Plugin, name: str, process: str | None) -> Object:
    env = {
        "ONESHOT": "false" if process else "true",
        "NODE_LABEL": LABEL,
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "CONFIG_FILE_DST": CONFIG_FILE,
        "DEFAULT_CONFIG": next(iter(plugin.groups)),
        "FALLBACK_STRATEGIES": "named,single",
        "SEND_SIGNAL": "true" if process else "false",
        "SIGNAL": SIGHUP if process else "",
        "PROCESS_TO_SIGNAL": process or "",
    }
    node: Object = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    return {
        "name": name,
        "image": plugin.release.image,
        "command": ["config-manager"],
        "env": [node, *({"name": key, "value": value} for key, value in env.items())],
        "volumeMounts": [one.mount for one in chooser_mounts()],
    }


def access(namespace: str) -> list[Object]:
    """An account that may read nodes, for their labels, and nothing else."""
    named: Object = {"name": ACCOUNT}
    role: Object = {"apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT}
    rule: Object = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    subject: Object = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**named, "namespace": namespace}},
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": named, "rules": [rule]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "subjects": [subject],
            "roleRef": role,
        },
    ]
