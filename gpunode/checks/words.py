"""Small readings of text that several checks share. All are total: odd text gives None or nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpunode.advice import typed
from gpunode.model.facts import HostFacts
from gpunode.model.versions import DRIVER_VERSION

if TYPE_CHECKING:
    from gpunode.packages.base import Backend, Verb

_ANYWHERE = re.compile(rf"(?<![0-9])(?<![0-9]\.)({DRIVER_VERSION})")


def backend_of(host: HostFacts) -> Backend | None:
    from gpunode.packages.registry import BACKENDS

    return BACKENDS.get(host.packages.manager or "")


def typed_for(host: HostFacts, verb: Verb, *names: str) -> str:
    """The command to run on this host; the bare verb where gpunode does not know its package manager."""
    backend = backend_of(host)
    return backend.words(verb, *names) if backend else typed(verb, *names)


def driver_version(text: str) -> str | None:
    """The driver version in `text`: of a package, a file name, a line."""
    found = _ANYWHERE.search(text)
    return found.group(1) if found else None


def branch(version: str) -> int | None:
    """595 for "595.91.07"; None for what is no driver version."""
    found = re.match(r"(\d{3})\.", version, re.ASCII)
    return int(found.group(1)) if found else None


def numbers(version: str) -> tuple[int, ...]:
    """(1, 17, 8) for "1.17.8-1", to compare versions; () when it holds none."""
    found = re.search(r"\d{1,9}(?:\.\d{1,9})*", version, re.ASCII)
    return tuple(map(int, found.group().split("."))) if found else ()


def active_lines(text: str | None) -> tuple[tuple[int, str], ...]:
    """(line number, line) of a config file without blank lines and # comments."""
    stripped = ((n, line.strip()) for n, line in enumerate((text or "").splitlines(), 1))
    return tuple((n, line) for n, line in stripped if line and not line.startswith("#"))


def setting(text: str | None, key: str) -> tuple[int, str] | None:
    """(line number, value) of the last `key = value` in TOML, quotes removed; None when it is not there."""
    pattern = re.compile(rf"{re.escape(key)}\s*=\s*(?P<value>\"[^\"]*\"|'[^']*'|[^#]*)")
    found = [(n, m["value"].strip().strip("\"'")) for n, line in active_lines(text) if (m := pattern.match(line))]
    return found[-1] if found else None
