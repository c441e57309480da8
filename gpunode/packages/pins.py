"""Whose a pin is: what an admin holds is not changed unless it is asked for, and is named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gpunode.advice import typed
from gpunode.model.facts import HostFacts
from gpunode.packages.base import Backend

_GLOB = frozenset("*?[")


def pinned_by_others(host: HostFacts, names: Iterable[str]) -> tuple[str, ...]:
    """What pins any of `names`, by name or by pattern, where gpunode neither installed nor pinned it."""
    named, journal = tuple(names), host.journal
    held = host.packages.held - journal.packages - journal.pinned
    return tuple(sorted(pin for pin in held if any(fnmatchcase(name, pin) for name in named)))


def named_by(words: Iterable[str], names: Iterable[str]) -> frozenset[str]:
    """Those of `names` that the words of gpunode's commands name, or match: "nvidia-open", "*nvidia*".

    Most words are no patterns. Some are whole scripts, and no pattern either: no package has a blank in its name, and
    to compile one takes longer than to read the rest of the journal.
    """
    long = {word for word in words if len(word) > 2}  # "*" alone would be everybody's
    patterns = [word for word in long if not _GLOB.isdisjoint(word) and word.split() == [word]]
    return frozenset(name for name in names if name in long or any(fnmatchcase(name, each) for each in patterns))


def unpinning(backend: Backend, names: Sequence[str]) -> str:
    """The command that removes their pins: "apt-mark unhold nvidia-open"."""
    run = backend.unhold(names)
    return run.description or typed(*run.argv)
