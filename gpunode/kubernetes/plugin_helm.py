"""The settings as values of NVIDIA's chart nvidia-device-plugin; what it has no value for goes into its config map."""

from __future__ import annotations

from gpunode.errors import UsageError
from gpunode.kubernetes.documents import Object
from gpunode.kubernetes.plugin_container import driver_root, rights
from gpunode.kubernetes.plugin_model import Plugin, Settings, Value
from gpunode.kubernetes.plugin_spelling import config_file, config_text, put
from gpunode.kubernetes.plugin_values import spelled

REPOSITORY = "https://nvidia.github.io/k8s-device-plugin"


def helm_values(plugin: Plugin, runtime_class: str | None) -> Object:
    """Raises UsageError for what the chart cannot say."""
    as_values = _same_everywhere(plugin)
    if root := driver_root(plugin):
        as_values["driver-root"] = root  # the chart mounts it where it is said alone
    values: dict[str, object] = {"image": {"tag": plugin.release.tag}}
    if runtime_class:
        values["runtimeClassName"] = runtime_class
    for one in plugin.options:
        path = one.helm_of(plugin.release.numbers)
        if one.flag in as_values and path:
            put(values, path, _helm(as_values[one.flag]))
    configs = _configs(plugin, frozenset(as_values))
    if configs:
        values["config"] = {"map": configs, "default": next(iter(configs))}
    if rights(plugin).get("privileged") and "pass-device-specs" not in as_values:
        values["securityContext"] = {"privileged": True}  # the chart looks at its own value alone
    if plugin.any("mps") or _for_gfd(plugin):
        put(values, "gfd.enabled", True)  # labels the nodes on which MPS' daemon runs
    return values


def _same_everywhere(plugin: Plugin) -> dict[str, Value]:
    """What all groups have alike and the chart has a value for."""
    release, first = plugin.release.numbers, plugin.settings.values
    return {
        one.flag: first[one.flag]
        for one in plugin.options
        if first.get(one.flag, ()) != () and one.helm_of(release)
        if all(group.get(one.flag) == first[one.flag] for group in plugin.groups.values())
    }


def _configs(plugin: Plugin, without: frozenset[str]) -> dict[str, str]:
    """The config files, by group; {} where none says more than the chart's values."""
    _refuse_lost(plugin, without)
    files = [config_file(plugin, one, without=without) for one in plugin.groups.values()]
    if not plugin.grouped and files == [{"version": "v1"}]:
        return {}
    return {name: config_text(plugin, one, without=without) for name, one in plugin.groups.items()}


def _refuse_lost(plugin: Plugin, without: frozenset[str]) -> None:
    lost = [
        one.flag
        for one in plugin.options
        if not one.config and one.flag not in without
        if any(group.values.get(one.flag, ()) != () for group in plugin.groups.values())
    ]
    if lost:
        raise UsageError(
            f"NVIDIA's chart {plugin.release.tag} cannot say {', '.join(lost)}",
            evidence="it has no value for it, and the plugin's config file no key",
            remedy="take --form manifest, or leave it out",
        )


def _for_gfd(plugin: Plugin) -> bool:
    def says(one: Settings) -> bool:
        return any(option.gfd and option.flag in one.values for option in plugin.options)

    return any(says(one) for one in plugin.groups.values())


def _helm(value: Value) -> object:
    """Lists are texts with commas there; true and false are no texts."""
    return value if isinstance(value, bool) else spelled(value)
