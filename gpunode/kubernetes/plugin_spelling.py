"""The settings as flags, as variables and as the plugin's config file: the same model in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpunode.catalog.plugin_options import PluginOption
from gpunode.errors import UsageError
from gpunode.kubernetes.documents import documents
from gpunode.kubernetes.plugin_model import Plugin, Settings, Sharing, Value
from gpunode.kubernetes.plugin_values import spelled

SPELLINGS = ("flag", "env", "config")


def default_spelling(plugin: Plugin) -> str:
    """The environment, as NVIDIA's own manifests have it, but for what only the config file can say."""
    one = plugin.settings
    return "config" if plugin.grouped or one.sharing or _for_gfd(plugin, one) else "env"


def arguments(plugin: Plugin, settings: Settings) -> list[str]:
    """["--mig-strategy=single"]. Raises UsageError for what has no flag."""
    _refuse_unspelled(plugin, settings, "flag")
    return [f"--{one.flag_of(plugin.release.numbers)}={spelled(value)}" for one, value in _each(plugin, settings)]


def environment(plugin: Plugin, settings: Settings) -> list[tuple[str, str]]:
    """[("MIG_STRATEGY", "single")]. Raises UsageError for what has no variable."""
    _refuse_unspelled(plugin, settings, "env")
    return [(one.env_of(plugin.release.numbers), spelled(value)) for one, value in _each(plugin, settings)]


def config_text(plugin: Plugin, settings: Settings, *, without: frozenset[str] = frozenset()) -> str:
    """The plugin's config file; options that have no key are not in it (`beside_config`)."""
    return documents([config_file(plugin, settings, without=without)])


def config_file(plugin: Plugin, settings: Settings, *, without: frozenset[str] = frozenset()) -> Mapping[str, object]:
    whole: dict[str, object] = {"version": "v1"}
    for one, value in _each(plugin, settings):
        if one.config and one.flag not in without:
            put(whole, one.config, _yaml(value))
    if settings.sharing:
        whole["sharing"] = {settings.sharing.strategy: _sharing(settings.sharing)}
    return whole


def beside_config(plugin: Plugin) -> list[tuple[str, str]]:
    """The variables of options that have no key in the config file. They are the same in every group."""
    return [
        (one.env_of(plugin.release.numbers), spelled(value))
        for one, value in _each(plugin, plugin.settings)
        if not one.config
    ]


def put(whole: dict[str, object], path: str, value: object) -> None:
    """whole["flags"]["plugin"]["passDeviceSpecs"] = value, by "flags.plugin.passDeviceSpecs"."""
    *holders, last = path.split(".")
    inner = whole
    for key in holders:
        held = inner.setdefault(key, {})
        assert isinstance(held, dict)
        inner = held
    inner[last] = value


def _each(plugin: Plugin, settings: Settings) -> Iterator[tuple[PluginOption, Value]]:
    """In the order of the table, whatever the order in which they were said.

    An empty list is what the plugin has without the option, and "" would be one value to it: it ends with
    `could not parse "" as int slice value`.
    """
    said = settings.values
    return ((one, said[one.flag]) for one in plugin.options if said.get(one.flag, ()) != ())


def _for_gfd(plugin: Plugin, settings: Settings) -> list[str]:
    return [one.flag for one, _ in _each(plugin, settings) if one.gfd]


def _refuse_unspelled(plugin: Plugin, settings: Settings, spelling: str) -> None:
    only = ["sharing"] * bool(settings.sharing) + _for_gfd(plugin, settings)
    if plugin.grouped or only:
        raise UsageError(
            f"--spelling {spelling} cannot say {', '.join(only) or 'what differs by node group'}",
            evidence="the plugin has neither flag nor variable for it: it is read from the config file",
            remedy="leave --spelling out, or take config",
        )


def _yaml(value: Value) -> object:
    return list(value) if isinstance(value, tuple) else value


def _sharing(one: Sharing) -> Mapping[str, object]:
    shared: dict[str, object] = {"renameByDefault": True} if one.rename else {}
    if one.fail_above_one is not None:
        shared["failRequestsGreaterThanOne"] = one.fail_above_one
    return {**shared, "resources": [{"name": r.name, "replicas": r.replicas} for r in one.resources]}
