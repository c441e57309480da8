"""Whether a command line will first look at this machine: then it looks while gpunode is still being loaded.

A look changes nothing, so one too many costs time only. It is the same script that the verb asks for (Local.run takes
its answer), and it is started for root alone: nobody's sudo is asked for a command line that may be wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_VERBS = ("check", "detect", "plan")
# Of other hosts, of none, of this one later, or as somebody else.
_OTHERWISE = (
    *("--ssh", "--recorded", "--help", "-h", "--list", "--explain", "--unit", "--fix"),
    *("--ask-become-pass", "--become-pass-file"),
)


@contextmanager
def looking_ahead(words: Sequence[str]) -> Iterator[None]:
    """Within it the look goes on; behind it nothing of it remains."""
    if not _at_this_machine(words):
        yield
        return
    from gpunode.facts.probe_script import probe_script
    from gpunode.transport.local import end_ahead, start_ahead

    start_ahead(probe_script())
    try:
        yield
    finally:
        end_ahead()


def _at_this_machine(words: Sequence[str]) -> bool:
    named = {word.partition("=")[0] for word in words}
    return words[:1] != [] and words[0] in _VERBS and named.isdisjoint(_OTHERWISE) and os.geteuid() == 0
