"""What was typed and the config files, as one validated model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpunode.advice import meant
from gpunode.catalog.plugin_options import PluginOption
from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_file import read_settings
from gpunode.kubernetes.plugin_model import Plugin, Settings, Value
from gpunode.kubernetes.plugin_rules import validate
from gpunode.kubernetes.plugin_values import from_word, spelled
from gpunode.regex import regex

MOST_GROUPS = 32
_GROUP = regex(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")  # a label's value, and a key of a ConfigMap
# What the pod of every group has alike: it is one DaemonSet, which mounts directories of the host.
OF_THE_POD = ("driver-root", "driver-root-ctr-path", "mps-root")


def plugin_of(
    release: PluginRelease,
    options: Sequence[PluginOption],
    configs: Sequence[str],
    words: Sequence[str],
    read: Callable[[str], str],
) -> Plugin:
    """`configs`: FILE or GROUP=FILE; `words`: NAME=VALUE, which take precedence. `read` gives a file's text.

    Raises UsageError.
    """
    said = _said(words, options)
    groups = {
        name: Settings({**one.values, **said}, one.sharing) for name, one in _groups(configs, options, read).items()
    }
    plugin = Plugin(release, tuple(options), _alike(groups))
    validate(plugin)
    return plugin


def _groups(
    configs: Sequence[str], options: Sequence[PluginOption], read: Callable[[str], str]
) -> Mapping[str, Settings]:
    if len(configs) > MOST_GROUPS:
        raise UsageError(f"more than {MOST_GROUPS} --config", remedy="a cluster has fewer kinds of GPU nodes")
    groups: dict[str, Settings] = {}
    for config in configs:
        name, equals, path = config.partition("=")
        name, path = (name, path) if equals else ("default", config)
        if not _GROUP.fullmatch(name) or name in groups:
            why = "stands twice" if name in groups else "is no name of a group"
            raise UsageError(
                f"--config {config!r:.80}: {name[:60]!r} {why}",
                remedy="--config FILE, or --config GROUP=FILE for each group of nodes, whose label has that name",
            )
        groups[name] = read_settings(read(path), path, options)
    return groups or {"default": Settings()}


def _alike(groups: Mapping[str, Settings]) -> Mapping[str, Settings]:
    """What one group says of the pod, all say. Raises UsageError where two differ."""
    shared: dict[str, Value] = {}
    for name in OF_THE_POD:
        found = {one.values[name] for one in groups.values() if name in one.values}
        if len(found) > 1:
            raise UsageError(
                f"{name} differs between the groups: {', '.join(sorted(map(spelled, found)))}",
                evidence="one DaemonSet serves all of them, and mounts one directory of the host",
                remedy="give it once, with --set",
            )
        if found:
            shared[name] = found.pop()
    return {name: Settings({**one.values, **shared}, one.sharing) for name, one in groups.items()}


def _said(words: Sequence[str], options: Sequence[PluginOption]) -> Mapping[str, Value]:
    by_name = {name: one for one in options for name in one.names}
    said: dict[str, Value] = {}
    for word in words:
        name, equals, text = word.partition("=")
        option = by_name.get(name.removeprefix("--"))
        if option is None or not equals:
            known = meant(name[:80], by_name) if equals else "the form is NAME=VALUE"
            raise UsageError(
                f"--set {word!r:.80} is no option of the plugin",
                evidence=known.strip() or f"its options are {', '.join(one.flag for one in options)}",
                remedy="give its flag, variable, key or value of the chart: --set mig-strategy=single",
            )
        if option.flag in said:
            raise UsageError(f"--set {option.flag} stands twice", remedy="give it once")
        try:
            said[option.flag] = from_word(option, text)
        except UsageError as fault:
            raise UsageError(f"--set {name}: {fault.problem}", remedy=f"give {option.flag} another value") from None
    return said
