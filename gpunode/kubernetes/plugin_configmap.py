"""The plugin's config files in a ConfigMap, a key for each group of nodes."""

from __future__ import annotations

from gpunode.errors import UsageError
from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_container import Mount
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_spelling import beside_config, config_text

NAME = "nvidia-device-plugin-config"
KEY = "config.yaml"  # of one config for all nodes; a group's key is its name, as the node's label says it


def config_map(plugin: Plugin, namespace: str) -> Object:
    texts = {name if plugin.grouped else KEY: config_text(plugin, one) for name, one in plugin.groups.items()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace},
        "data": texts,
    }


def config_mount() -> Mount:
    return Mount("config", "/config", {"configMap": {"name": NAME}}, read_only=True)


def refuse_lost(plugin: Plugin, form: str) -> None:
    """Raises UsageError for settings that no config file has."""
    if lost := beside_config(plugin):
        raise UsageError(
            f"--form {form} has no place for {', '.join(name for name, _ in lost)}",
            evidence="the plugin's config file has no key for it: it is a flag or a variable alone",
            remedy="take --form manifest, which gives it as a variable",
        )
