"""Plugins for tests, and readers of what was printed of them: back into the model, by the names of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from gpunode.catalog.plugin_options import PluginOption, plugin_options
from gpunode.catalog.plugin_releases import PluginRelease, plugin_releases
from gpunode.kubernetes.plugin_file import read_settings
from gpunode.kubernetes.plugin_model import Plugin, Settings, Value
from gpunode.kubernetes.plugin_request import plugin_of
from gpunode.kubernetes.plugin_values import from_word

OPTIONS = plugin_options()
RELEASES = plugin_releases()
NEWEST = RELEASES[-1]
# Those from which on an option is new, or has another name: between them nothing changes.
TURNS = [
    one
    for one, before in zip(RELEASES, (None, *RELEASES), strict=False)
    if before is None or any(before.numbers < turn <= one.numbers for o in OPTIONS for turn in (o.since, o.renamed))
]
MPS = "flags: {mpsRoot: /run/nvidia/mps}\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
SLICED = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 10}]}}\n"


def plugin(release: PluginRelease = NEWEST, set: Sequence[str] = (), **configs: str) -> Plugin:
    """`configs`: the text of each group's file; `default` for the one of all nodes."""
    return plugin_of(release, OPTIONS, [f"{name}={name}" for name in configs], set, configs.__getitem__)


def container(objects: Sequence[Any]) -> Any:
    """The plugin's own, out of the objects of a manifest."""
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "DaemonSet"]
    return next(c for pod in pods for c in pod["containers"] if c["name"] == "nvidia-device-plugin-ctr")


def from_arguments(args: Sequence[str]) -> dict[str, Value]:
    by_flag = {f"--{flag}": one for one in OPTIONS for flag in (one.flag, one.old_flag)}
    return _values(by_flag, (arg.split("=", 1) for arg in args))


def from_environment(env: Sequence[Mapping[str, str]]) -> dict[str, Value]:
    by_env = {name: one for one in OPTIONS for name in (one.env, one.old_env)}
    return _values(by_env, ([one["name"], one["value"]] for one in env if one["name"] in by_env))


def from_config(text: str) -> Settings:
    return read_settings(text, "printed", OPTIONS)


def from_helm(values: Mapping[str, Any]) -> Settings:
    """The chart's values, and its config map under them."""
    configs = values.get("config", {}).get("map", {})
    held = from_config(next(iter(configs.values()))) if configs else Settings()
    said: dict[str, Value] = {}
    for one in OPTIONS:
        value = _at(values, one.helm) if one.helm else None
        if value is not None:
            said[one.flag] = value if isinstance(value, bool) else from_word(one, str(value))
    return Settings({**held.values, **said}, held.sharing)


def documents_of(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def _at(values: Mapping[str, Any], path: str) -> Any:
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _values(by_name: Mapping[str, PluginOption], pairs: Any) -> dict[str, Value]:
    return {by_name[name].flag: from_word(by_name[name], text) for name, text in pairs}
