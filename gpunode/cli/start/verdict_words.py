"""Whether a command line asks for a verdict on this node (--npd, --nhc), read from its words: nothing else is loaded,
for what breaks may be the loading.
"""

from __future__ import annotations

from collections.abc import Sequence

FLAGS = ("--npd", "--nhc")
NO_VERDICT = 2  # UNKNOWN of render/verdict.py; gpunode's own code of a failure, 1, is there a node that is unfit


def asks_for_verdict(words: Sequence[str]) -> bool:
    return words[:1] == ["check"] and not set(FLAGS).isdisjoint(words)
