"""Values of NVIDIA's GPU Operator for nodes whose driver, toolkit and MIG layout are gpunode's."""

from __future__ import annotations

from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_configmap import KEY, NAME
from gpunode.kubernetes.plugin_model import Plugin
from gpunode.kubernetes.plugin_spelling import beside_config, config_file, config_text, put

OPERATOR = "v26.7.0"  # whose chart has these values
OWN = frozenset({"mig-strategy", "mps-root"})  # the operator has values of its own for them


def operator_values(plugin: Plugin, runtime_class: str | None) -> Object:
    values: dict[str, object] = {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "cdi": {"enabled": True},
        # Its manager changes the layout by itself, and restarts the kubelet for it.
        "migManager": {"enabled": False},
        "operator": {"runtimeClass": runtime_class or "nvidia"},
        # It overrides what a config says; empty, it leaves each group its own.
        "mig": {"strategy": "" if plugin.grouped else plugin.settings.get("mig-strategy") or "none"},
        "devicePlugin": {"version": plugin.release.tag},
    }
    if root := plugin.settings.get("mps-root"):
        put(values, "devicePlugin.mps.root", root)
    if env := beside_config(plugin):
        put(values, "devicePlugin.env", [{"name": name, "value": value} for name, value in env])
    if plugin.grouped or config_file(plugin, plugin.settings, without=OWN) != {"version": "v1"}:
        put(values, "devicePlugin.config", _config(plugin))
    return values


def _config(plugin: Plugin) -> Object:
    without = frozenset[str]() if plugin.grouped else OWN
    texts = {
        name if plugin.grouped else KEY: config_text(plugin, one, without=without)
        for name, one in plugin.groups.items()
    }
    return {"create": True, "name": NAME, "default": next(iter(texts)), "data": texts}
