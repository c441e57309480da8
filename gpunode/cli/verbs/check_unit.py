"""check --unit service|timer: the systemd unit that runs this very command line regularly. Printed, not installed."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from gpunode import resources
from gpunode.advice import meant
from gpunode.cli.options.groups import HostOptions, ResultOptions
from gpunode.cli.options.spec import flag_words
from gpunode.cli.results import UnitFile, show_result
from gpunode.errors import ExitCode, UsageError
from gpunode.fleet.inventory.words import split_words
from gpunode.fleet.own_command import own_command
from gpunode.planner.resume import exec_line
from gpunode.render.style import Style

KINDS = ("service", "timer")


def show_unit(kind: str, hosts: HostOptions, *others: Any, strict: bool) -> int:
    """`others`: the groups of options that the unit's command line has as well. Raises UsageError."""
    if kind not in KINDS:
        raise UsageError(
            f"--unit {kind!r} is not a choice",
            evidence=f"{meant(kind, KINDS)}the choices are {', '.join(KINDS)}",
            remedy="choose one of them with --unit",
        )
    if hosts.ask_become_pass:
        raise UsageError("--ask-become-pass needs a terminal", remedy="use --become-pass-file FILE")
    if hosts.ask_pass:
        raise UsageError("--ask-pass needs a terminal", remedy="log in with a key")
    if str(hosts.inventory) == "-":
        raise UsageError("--inventory - reads standard input, and a unit has none", remedy="name a file")
    if any(word.startswith("@") and word[1:2] != "/" for value in hosts.ssh or () for word in split_words(value)):
        raise UsageError(
            "--ssh @FILE is for a whole path here", evidence="a unit runs in the root directory", remedy="write @/..."
        )
    words = [word for group in (hosts, *others) for word in _words(group)] + ["--strict"] * strict
    show_result(UnitFile(kind, (*own_command(), "check", *words)), ResultOptions())
    return int(ExitCode.DONE)


def page(result: UnitFile, style: Style) -> str:
    values = {"command": exec_line(result.argv)} if result.kind == "service" else {}
    return resources.render(f"systemd/gpunode-check.{result.kind}.j2", **values)


def _words(group: Any) -> list[str]:
    """What was typed of a group, with whole paths: a unit runs in the root directory."""
    words: list[str] = []
    for field in fields(group):
        value = getattr(group, field.name)
        if field.name == "verbose":
            words += ["-v"] * value
        elif value != field.default:
            words += flag_words(field.name, _whole(value))
    return words


def _whole(value: object) -> object:
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return os.path.abspath(value) if isinstance(value, Path) else value
