"""Small readings of text that several checks share. All are total: odd text gives None or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpunode.advice import typed
from gpunode.model.facts import HostFacts
from gpunode.packages.base import Backend, Verb
from gpunode.packages.registry import BACKENDS

# 595.91.07, 550.163.01: what NVIDIA's driver calls itself; also inside package versions (1:595.91.07-1~deb12).
DRIVER_VERSION = re.compile(r"(?<!\d)(?<!\d\.)(\d{3}\.\d{2,3}(?:\.\d{2,3})?)(?![\d.]*\d)", re.ASCII)


def backend_of(host: HostFacts) -> Backend | None:
    return BACKENDS.get(host.packages.manager or "")


def typed_for(host: HostFacts, verb: Verb, *names: str) -> str:
    """What a person types on this host; the bare words where gpunode knows no package manager of it."""
    backend = backend_of(host)
    return backend.words(verb, *names) if backend else typed(verb, *names)


def driver_version(text: str) -> str | None:
    """The driver version that `text` carries: of a package, a file name, a line."""
    found = DRIVER_VERSION.search(text)
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


def listing(items: Iterable[str], limit: int = 4) -> str:
    """ "a, b, c and 5 more"."""
    all_items = list(items)
    more = len(all_items) - limit
    return ", ".join(all_items[:limit]) + (f" and {more} more" if more > 0 else "")
