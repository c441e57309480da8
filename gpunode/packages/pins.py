"""Pins that are not gpunode's: what an admin holds is not changed unless it is asked for, and is named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gpunode.advice import typed
from gpunode.model.facts import HostFacts
from gpunode.packages.base import Backend


def pinned_by_others(host: HostFacts, names: Iterable[str]) -> tuple[str, ...]:
    """What pins any of `names`, by name or by pattern, where gpunode neither installed nor pinned it."""
    named, journal = tuple(names), host.journal
    held = host.packages.held - journal.packages - journal.pinned
    return tuple(sorted(pin for pin in held if any(fnmatchcase(name, pin) for name in named)))


def unpinning(backend: Backend, names: Sequence[str]) -> str:
    """The command that removes their pins: "apt-mark unhold nvidia-open"."""
    run = backend.unhold(names)
    return run.description or typed(*run.argv)
