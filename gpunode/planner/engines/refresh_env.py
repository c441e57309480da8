"""The environment file of nvidia-cdi-refresh.service, in which the toolkit is told to write what older engines read."""

from __future__ import annotations

import re

from gpunode.catalog.cdi_versions import FLAG, VARIABLE
from gpunode.regex import regex

# EnvironmentFile= of nvidia-cdi-refresh.service, systemd.exec(5): the last line of a name is the one in force.
PATH = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
# A backslash before the end of a line continues it.
_ASSIGNED = regex(rf"^[ \t]*{VARIABLE}[ \t]*=((?:[^\n\\]|\\[\s\S])*)", re.MULTILINE)


def is_flagged(environment: str) -> bool:
    """Whether the environment file has FLAG in force."""
    return FLAG in _flags(environment)


def flagged(environment: str) -> str:
    """The environment file with FLAG in force: beside the flags that are there, every other line unchanged."""
    if is_flagged(environment):
        return environment
    line = f"{VARIABLE}={','.join((*_flags(environment), FLAG))}"
    if last := _last(environment):
        return f"{environment[: last.start()]}{line}{environment[last.end() :]}"
    # An empty line ends one that is continued.
    end = "\n" if environment.endswith("\\\n") else "" if environment.endswith("\n") or not environment else "\n"
    return f"{environment}{end}{line}\n"


def _flags(environment: str) -> tuple[str, ...]:
    last = _last(environment)
    return tuple(re.findall(r"[\w=.-]+", last[1])) if last else ()


def _last(environment: str) -> re.Match[str] | None:
    return next(reversed(list(_ASSIGNED.finditer(environment))), None)
