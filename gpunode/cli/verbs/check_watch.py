"""check --watch N: again N seconds after the last round ended, until Ctrl-C or until nobody reads it any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpunode.cli.output import Reader
from gpunode.errors import UsageError

if TYPE_CHECKING:
    from gpunode.cli.options.groups import ResultOptions
    from gpunode.cli.results import Checked

STREAMS = ("text", "jsonl")  # what may follow itself on stdout


def refuse_documents(form: str, output: ResultOptions) -> None:
    """Raises UsageError for a format of which a second one on stdout would spoil the first."""
    if form not in STREAMS and not output.output:
        raise UsageError(
            f"--watch prints one result after another, and {form} is one document",
            evidence=f"{' and '.join(STREAMS)} can follow themselves on stdout",
            remedy="choose one of them, or write each result to a file with --output",
        )


def watch(
    every_s: int,
    look: Callable[[], Checked],
    show: Callable[[Checked], int],
    *,
    only_changes: bool,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """The exit code of the last round. `only_changes`: a round that found what the one before it found is not shown."""
    code, before = 0, None
    while True:
        result = look()
        found = _found(result)
        if found != before or not only_changes:
            code = show(result)
        before = found
        if Reader.left:
            return code
        try:
            wait(every_s)
        except KeyboardInterrupt:
            return code


def _found(result: Checked) -> list[object]:
    """What of a result is news when it changes: not how long it took, and no fact that no check speaks of."""
    hosts = result.report.hosts
    return [(h.target, h.code, h.problem, h.evidence, h.check.results if h.check else None) for h in hosts]
