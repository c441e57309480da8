"""How a run went through its hosts, as far as it was typed: kept of it, and typed again for who goes on with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from gpunode.cli.options.rollout import OF_REBOOTS, RolloutOptions
from gpunode.errors import UsageError
from gpunode.fleet.rollout.window import Window
from gpunode.masking import MASK

_PATHS = ("drain_kubernetes",)
_SWITCHES = ("drain_slurm", "delete_emptydir_data")
_INSTEAD = {"max_failures": "on_host_error", "on_host_error": "max_failures"}  # one is typed in place of the other


def typed_rollout(options: RolloutOptions, window: Window) -> dict[str, object]:
    """{"canary": "2", "drain_slurm": True}: what was typed, in JSON's types. None of it is a secret.

    A time by the clock is kept as the moment that it was: 22:00 of tomorrow is another window.
    """
    found: dict[str, object] = {}
    for one in fields(options):
        value = getattr(options, one.name)
        if value != one.default:
            found[one.name] = os.path.abspath(value) if one.name in _PATHS else value
    for name, moment in (("not_before", window.opens), ("not_after", window.closes)):
        if name in found and moment is not None:
            found[name] = moment.isoformat(timespec="seconds")
    return found


def rolled_as(
    options: RolloutOptions, kept: Mapping[str, object], *, reboots: bool
) -> tuple[RolloutOptions, tuple[str, ...]]:
    """`options`, and for what was not typed of it what an earlier run was typed with; and the words of that.

    Each value is read again as if it were typed now. Without `reboots` there are none to limit. Raises UsageError.
    """
    taken = {
        one.name: _value(one.name, kept[one.name])
        for one in fields(options)
        if one.name in kept and getattr(options, one.name) == one.default and not _replaced(options, one.name)
    }
    if not reboots:
        taken = {name: value for name, value in taken.items() if _flag(name) not in OF_REBOOTS}
    words = tuple(_flag(name) if value is True else f"{_flag(name)} {value}" for name, value in taken.items())
    return replace(options, **taken), words  # type: ignore[arg-type]  # each is of its field's type: _value


def _replaced(options: RolloutOptions, name: str) -> bool:
    return name in _INSTEAD and getattr(options, _INSTEAD[name]) is not None


def _value(name: str, value: object) -> object:
    if not (value is True if name in _SWITCHES else isinstance(value, str)):
        raise UsageError(f"the record of the run has no value of {_flag(name)}", remedy=f"type {_flag(name)}")
    if isinstance(value, str) and MASK in value:
        raise UsageError(
            f"the record of the run has no whole {_flag(name)}",
            evidence="a password may stand in it, and none is kept",
            remedy=f"type {_flag(name)}",
        )
    return Path(str(value)) if name in _PATHS else value


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
