"""What `gpunode setup` would have to be asked for to make another host like this one: the first half of a lock."""

from __future__ import annotations

from gpunode.checks.expect import seen
from gpunode.checks.words import setting
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.installed import installed_source, installed_version, lead_package
from gpunode.model.platforms import platform_origin
from gpunode.model.report import NotApplicable
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_MODE

_HANDLER = "nvidia"
_NONE = NotApplicable("there is none")


def settings(host: HostFacts) -> tuple[dict[str, str], dict[str, str]]:
    """Key of a spec -> its text, and key -> why it is not known of this host, or cannot be asked for."""
    engines = [one for one in seen.with_handlers(host) if _HANDLER in one.handlers]
    all_of_it: dict[str, str | NotApplicable] = {
        **_driver(host),
        "toolkit": _first(seen.toolkit(host)),
        "runtime": ",".join(one.label for one in engines) or NotApplicable("no running engine has the handler nvidia"),
        "default": _alike(
            engines, [None if one.effective_default is None else one.nvidia_by_default for one in engines]
        ),
        "cdi": _alike(engines, [one.cdi for one in engines]),
        "handler": _HANDLER if engines else NotApplicable("no running engine has the handler nvidia"),
        "mig": _mig(host),
        "toolkit_config.mode": _mode(host),
    }
    found = {key: value for key, value in all_of_it.items() if isinstance(value, str)}
    return found, {key: value.reason for key, value in all_of_it.items() if isinstance(value, NotApplicable)}


def _driver(host: HostFacts) -> dict[str, str | NotApplicable]:
    """What comes with the platform (a vGPU's driver, a container's) is nothing that setup can be asked for."""
    if origin := platform_origin(host):
        return dict.fromkeys(("driver", "flavour", "driver_source", "hold"), NotApplicable(origin.summary))
    return {
        "driver": installed_version(host) or _NONE,
        "flavour": _first(seen.flavour(host)),
        "driver_source": installed_source(host) or NotApplicable("no package stands for the driver"),
        "hold": _held(host),
    }


def _first(values: seen.Seen) -> str | NotApplicable:
    if isinstance(values, NotApplicable):
        return values
    return values[0] if values else _NONE


def _alike(engines: list[RuntimeFacts], values: list[bool | None]) -> str | NotApplicable:
    """One word for all engines, since setup has one for all that it configures."""
    known = set(values)
    if not engines:
        return NotApplicable("no running engine has the handler nvidia")
    if None in known:
        return NotApplicable(f"{engines[values.index(None)].label} does not say")
    return NotApplicable("the engines differ") if len(known) > 1 else str(known.pop()).lower()


def _held(host: HostFacts) -> str | NotApplicable:
    from gpunode.packages.pins import named_by

    lead = lead_package(host)
    if lead is None:
        return NotApplicable("no package stands for the driver")
    return str(bool(named_by(host.packages.held, (lead,)))).lower()


def _mig(host: HostFacts) -> str | NotApplicable:
    found = seen.mig(host)
    if isinstance(found, NotApplicable):
        return found
    return NotApplicable("no GPU is partitioned") if found == ("all=off",) else ",".join(found)


def _mode(host: HostFacts) -> str | NotApplicable:
    found = setting(host.file(TOOLKIT_CONFIG), TOOLKIT_MODE)
    return found or NotApplicable(f"{TOOLKIT_CONFIG} does not set it, or was not read")
