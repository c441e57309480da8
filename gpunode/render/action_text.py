"""What an action runs, as a shell command: taken from the action itself, never from its description."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpunode.masking import mask_argv
from gpunode.model.action import (
    Action,
    PutFile,
    Reboot,
    RemoveFile,
    Run,
)
from gpunode.render.clean import clean_line
from gpunode.render.wording import count

LONGEST = 600  # characters of one command; --json has every byte


def action_lines(action: Action) -> Iterator[tuple[str, str]]:
    """("does", "write /etc/docker/daemon.json"), ("asks", "dockerd --validate ..."): a word and its line each."""
    match action:
        case Run():
            if action.description:
                yield "does", clean_line(action.description)
            yield "runs", command(action)
        case PutFile():
            yield (
                "does",
                clean_line(f"write {action.path}{_as(action.owner)}"),
            )
            if action.validate:
                yield "asks", command(action.validate)
        case RemoveFile():
            yield (
                "does",
                clean_line(f"remove {action.path}{_as(action.owner)}"),
            )
        case Reboot():
            yield "does", "reboot and wait for the host"


def command(run: Run) -> str:
    """Its argv, quoted for a shell, with its environment before it and the size of what it reads on stdin."""
    env = ("env", *(f"{name}={value}" for name, value in run.env)) if run.env else ()
    text = clean_line(shlex.join(mask_argv((*env, *run.argv))))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text) - LONGEST} more characters; --json shows them)"
    lines = run.stdin.count("\n") + (not run.stdin.endswith("\n"))
    return f"{text} < {count(lines, 'line')} on its stdin" if run.stdin else text


def _as(owner: str) -> str:
    return f" as {owner}" if owner else ""
