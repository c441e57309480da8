"""What an action runs, as a shell would be told it: read off the action itself, never off what it says of itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from gpunode.model.plan import Action, PutFile, Reboot, RemoveFile, Run
from gpunode.render.wording import count, mask_url, printable

LONGEST = 600  # characters of one command; --json has every byte


def action_lines(action: Action) -> Iterator[tuple[str, str]]:
    """("does", "write /etc/docker/daemon.json"), ("asks", "dockerd --validate ..."): a word and its line each."""
    match action:
        case Run():
            if action.says:
                yield "does", one_line(action.says)
            yield "runs", command(action)
        case PutFile():
            yield "does", f"write {one_line(action.path)}" + (f" as {one_line(action.owner)}" if action.owner else "")
            if action.validate:
                yield "asks", command(action.validate)
        case RemoveFile():
            yield "does", f"remove {one_line(action.path)}" + (f" as {one_line(action.owner)}" if action.owner else "")
        case Reboot():
            yield "does", "reboot and wait for the host"


def command(run: Run) -> str:
    """Its argv, quoted for a shell, with its environment before it and the size of what it reads on stdin."""
    env = ("env", *(f"{name}={mask_url(value)}" for name, value in run.env)) if run.env else ()
    text = one_line(shlex.join((*env, *run.argv)))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text) - LONGEST} more characters; --json shows them)"
    lines = run.stdin.count("\n") + (not run.stdin.endswith("\n"))
    return f"{text} < {count(lines, 'line')} on its stdin" if run.stdin else text


def one_line(text: str) -> str:
    """`text` with its line ends visible: what a host calls something cannot begin a line of ours."""
    return re.sub(r"[\n\t]", lambda m: {"\n": "\\n", "\t": "\\t"}[m.group()], printable(text))
