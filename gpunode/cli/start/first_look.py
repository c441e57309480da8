"""Whether a command line will first look at this machine: then it looks while gpunode is still being loaded.

A look changes nothing, so one too many costs time only. It is the same script that the verb asks for (Local.run takes
its answer), and it is started for root alone: nobody's sudo is asked for a command line that may be wrong.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_VERBS = ("check", "detect", "plan", "lock")
LOOKS = tuple([verb] for verb in _VERBS)  # alone: no option is to be parsed, and nothing that parses is loaded
# Of other hosts, of none, of this one later, or as somebody else.
_OTHERWISE = (
    *("--ssh", "--inventory", "--recorded", "--help", "-h", "--list", "--explain", "--unit", "--fix"),
    *("--ask-become-pass", "--become-pass-file"),
)
# Modules are loaded and stay: to look through them for garbage, every 700 new objects, takes Python 25 ms.
_OBJECTS = 50_000


@contextmanager
def looking_ahead(words: Sequence[str]) -> Iterator[None]:
    """Within it the look goes on; behind it nothing of it remains."""
    if not at_this_machine(words):
        yield
        return
    from gpunode.facts.probe_script import usual_probe_script
    from gpunode.transport.ahead import start_ahead

    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS)
    try:
        with suppress(OSError):  # a file that cannot be read: the verb reads it again, and says so
            start_ahead(usual_probe_script())
        yield
    finally:
        gc.set_threshold(*before)
        from gpunode.transport.local import end_ahead

        end_ahead()


def at_this_machine(words: Sequence[str]) -> bool:
    """Whether the verb of these words will look at this machine, as root, and do nothing else before."""
    named = {word.partition("=")[0] for word in words}
    return words[:1] != [] and words[0] in _VERBS and named.isdisjoint(_OTHERWISE) and os.geteuid() == 0
