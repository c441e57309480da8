"""Which settings a release of the plugin takes, and which of them go together (validateFlags of its main.go)."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing
from gpunode.catalog.plugin_options import Numbers, PluginOption
from gpunode.errors import UsageError
from gpunode.kubernetes.plugin_model import Plugin, Settings

ALLOWS_REQUESTS_OF_MPS = (0, 20)  # before, failRequestsGreaterThanOne of MPS is set to true whatever the file says
MPS_SINCE = (0, 15)
MPS_ROOT_WANTED = "MPS needs mpsRoot (/run/nvidia/mps is the chart's)"


def validate(plugin: Plugin) -> None:
    """Raises UsageError with every fault of every group."""
    faults = [
        f"{name}: {fault}" if plugin.grouped else fault
        for name, settings in plugin.groups.items()
        for fault in (*_not_yet(plugin, settings), *_together(plugin, settings))
    ]
    if faults:
        raise UsageError(
            f"device plugin {plugin.release.tag} does not take these settings",
            evidence=listing(faults, 20, between="\n"),
            remedy="correct them, or choose another release with --plugin-version",
        )


def notes(plugin: Plugin) -> Iterator[str]:
    """What a person should know of settings that are valid."""
    said = {name for one in plugin.groups.values() for name in one.values}
    trapped = [one.flag for one in plugin.options if _trapped(one, plugin.release.numbers) and one.flag not in said]
    if trapped:
        yield (
            f"{plugin.release.tag} switches {', '.join(trapped)} on by itself, as v0.19.0 to v0.19.2 do and no release "
            f"after them: --set {trapped[0]}=false and its like switch them off"
        )
    if any(one.get("device-id-strategy") == "index" for one in plugin.groups.values()):
        yield "device-id-strategy index: a GPU's index is another after one was added, removed or lost"


def _trapped(option: PluginOption, release: Numbers) -> bool:
    return len(option.true_in) == 2 and option.default_of(release) == "true"


def _not_yet(plugin: Plugin, settings: Settings) -> Iterator[str]:
    """Options and values that came after this release."""
    by_name = {one.flag: one for one in plugin.options}
    for name, value in settings.values.items():
        option = by_name[name]
        if plugin.release.numbers < option.since:
            yield f"{name} came with {written(option.since)}"
        words = value if isinstance(value, tuple) else (value,)
        for word, since in option.later.items():
            if word in words and plugin.release.numbers < since:
                yield f"{name} {word} came with {written(since)}"
        if value == "infinite" and plugin.release.numbers < (0, 19):
            yield f"{name} infinite came with v0.19.0"
    if settings.mps and plugin.release.numbers < MPS_SINCE:
        yield "MPS came with v0.15.0"


def _together(plugin: Plugin, settings: Settings) -> Iterator[str]:
    if settings.mps:
        if settings.mig:
            yield "MPS is not for MIG devices: mig-strategy is to be none"
        if not settings.get("mps-root"):
            yield MPS_ROOT_WANTED
        if (
            settings.sharing
            and settings.sharing.fail_above_one is False
            and plugin.release.numbers < ALLOWS_REQUESTS_OF_MPS
        ):
            yield "failRequestsGreaterThanOne of MPS is always true before v0.20.0"
    if settings.cdi and settings.get("device-discovery-strategy") == "tegra":
        yield "device-list-strategy of CDI is for systems with NVML, and device-discovery-strategy is tegra"
    if settings.get("imex-channel-ids") not in (None, (), (0,)):
        yield "imex-channel-ids is none, or 0 alone"
    if settings.get("device-list-strategy") == ():
        yield "device-list-strategy is empty"


def written(release: Numbers) -> str:
    """(0, 16) is v0.16.0."""
    return "v" + ".".join(map(str, (*release, 0, 0)[:3]))
