"""Values of NVIDIA's GPU Operator for nodes whose driver, toolkit and MIG layout are gpunode's."""

from __future__ import annotations

from gpunode.errors import UsageError
from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_configmap import KEY, NAME
from gpunode.kubernetes.plugin_model import MPS_ROOT, Plugin
from gpunode.kubernetes.plugin_spelling import beside_config, config_file, config_text, put

OPERATOR = "v26.7.0"  # whose chart has these values
# The operator has a value of its own for the strategy, and gives the plugin MPS_ROOT, which goes before the file.
OWN = frozenset({"mig-strategy", "mps-root"})


def operator_values(plugin: Plugin, runtime_class: str | None) -> Object:
    """Raises UsageError for what the chart cannot say."""
    _refuse_mps_root(plugin)
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
    if env := beside_config(plugin):
        put(values, "devicePlugin.env", [{"name": name, "value": value} for name, value in env])
    if plugin.grouped or config_file(plugin, plugin.settings, without=OWN) != {"version": "v1"}:
        put(values, "devicePlugin.config", _config(plugin))
    return values


def _refuse_mps_root(plugin: Plugin) -> None:
    root = plugin.settings.get("mps-root")  # all groups have the same
    if root not in (None, MPS_ROOT):
        raise UsageError(
            f"the GPU Operator's chart {OPERATOR} cannot say mps-root {root!s:.100}",
            evidence=f"its templates/clusterpolicy.yaml leaves the value devicePlugin.mps out: MPS is in {MPS_ROOT}",
            remedy=f"take mps-root={MPS_ROOT}, and set spec.devicePlugin.mps.root of the ClusterPolicy afterwards",
        )


def _config(plugin: Plugin) -> Object:
    without = frozenset[str]() if plugin.grouped else OWN
    texts = {
        name if plugin.grouped else KEY: config_text(plugin, one, without=without)
        for name, one in plugin.groups.items()
    }
    return {"create": True, "name": NAME, "default": next(iter(texts)), "data": texts}
