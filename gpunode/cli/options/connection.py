"""How hosts are reached, as far as it was typed: kept of a run, and typed again for who goes on with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpunode.advice import named
from gpunode.cli.options.groups import HostOptions, LiveOptions
from gpunode.cli.options.spec import flag_words
from gpunode.errors import UsageError
from gpunode.masking import MASK

# Of LiveOptions, what reaches the same hosts once more. None of it is a secret: passwords are asked for, or in a file.
_CONNECTION = (
    *("inventory", "identity", "user", "port", "jump", "ask_become_pass", "become_pass_file"),
    *("host_key", "connect_timeout", "forks", "key_pass_file", "ask_pass", "deadline"),
)
_WAY = ("user", "port", "jump", "identity")
_PATHS = ("inventory", "identity", "become_pass_file", "key_pass_file")
_SWITCHES = ("ask_become_pass", "ask_pass")


def typed_connection(options: LiveOptions) -> dict[str, object]:
    """{"user": "root", "identity": ["/root/.ssh/gpu"]}: what was typed of it, in JSON's types."""
    found: dict[str, object] = {}
    for name in _CONNECTION:
        value = getattr(options, name)
        if value is not None and value is not False:
            texts = [_kept_path(one) if name in _PATHS else one for one in _list(value)]
            found[name] = texts if isinstance(value, list) else texts[0]
    return found


def reaching_words(options: LiveOptions) -> tuple[str, ...]:
    """("--user", "ann", "--port", "2222"): what was typed of who is logged in as, and by which way."""
    typed = typed_connection(options)
    return tuple(word for name in _WAY if name in typed for word in flag_words(name, typed[name]))


def _kept_path(path: Path) -> str:
    return "-" if str(path) == "-" else os.path.abspath(path)


def connected_as(options: HostOptions, kept: Mapping[str, object]) -> HostOptions:
    """`options`, and for what was not typed of it what an earlier run was typed with. Raises UsageError.

    Each value is read again as if it were typed now.
    """
    values: dict[str, Any] = {}
    if options.ssh and kept.get("inventory") is not None:
        raise UsageError(
            "--ssh names no hosts of a run that had an inventory",
            evidence="that says how they are reached; by --ssh alone it might be another machine",
            remedy=f"name them with --limit {named(','.join(options.ssh))}",
        )
    if not (options.ssh or options.inventory) and kept.get("inventory") == "-":
        raise UsageError("the inventory of the run came on standard input", remedy="give it again, with --inventory")
    for name in _CONNECTION:
        value, typed = kept.get(name), getattr(options, name)
        if value is None or (typed is not None and typed is not False):
            continue
        right = value is True if name in _SWITCHES else all(isinstance(one, str) for one in _list(value))
        if not right or isinstance(value, list) != (name == "identity"):
            raise UsageError(
                f"the record of the run has no option of SSH in {name}", remedy=f"type --{name.replace('_', '-')}"
            )
        if any(MASK in one for one in _list(value) if isinstance(one, str)):
            raise UsageError(
                f"the record of the run has no whole --{name.replace('_', '-')}",
                evidence="a password may stand in it, and none is kept",
                remedy=f"type --{name.replace('_', '-')}",
            )
        paths = [Path(one) if name in _PATHS else one for one in _list(value)]
        values[name] = paths if isinstance(value, list) else paths[0]
    if options.ask_become_pass or options.become_pass_file:  # either is typed in place of the other
        values = {name: value for name, value in values.items() if name not in ("ask_become_pass", "become_pass_file")}
    return replace(options, **values)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
