"""The door to the terminal: whatever is shown goes through here (or cli/output.py, for stdout) and is cleaned.

No other file prints; tests/hostile/test_terminal.py reads the syntax trees for it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from gpunode.masking import masked
from gpunode.regex import regex
from gpunode.render.clean import clean
from gpunode.render.style import CODES, OURS

if TYPE_CHECKING:
    from rich.console import Console

_PAINT = regex(f"\x1b\\[({'|'.join([*CODES.values(), '0'])});{OURS}m")


def show(text: str, stream: TextIO | None, *, end: str = "\n", painted: bool = False) -> None:
    """Print `text`, masked once more and cleaned. `painted`: gpunode's own colours are in it. None: nobody reads."""
    if stream is None:
        return
    try:
        stream.write(encodable(cleaned(masked(text, "lines"), painted=painted), stream.encoding) + end)
        stream.flush()
    except OSError as error:
        if stream is not sys.stderr or isinstance(error, BlockingIOError):
            raise
        # Who read the remarks has left (`2>&1 | head`), or the disk that keeps them is full (`2>log`): what was asked
        # for goes on, and its exit code tells its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show_above(console: Console, text: str) -> None:
    """The same above a live table, with no markup read out of it: a step's "[red]" is shown as it is."""
    from rich.text import Text

    console.print(Text(cleaned(masked(text, "lines"), painted=False)), soft_wrap=True)


def cleaned(text: str, *, painted: bool) -> str:
    """`text` without what a terminal obeys; with `painted` what `paint` put in becomes colour, and nothing else."""
    if not painted:
        return clean(text)
    pieces = _PAINT.split(text)  # text and code in turns
    return "".join(f"\x1b[{piece}m" if place % 2 else clean(piece) for place, piece in enumerate(pieces))


def encodable(text: str, encoding: str | None) -> str:
    """`text` without what a stream's encoding lacks: under LANG=C the dots and arrows become question marks."""
    known = encoding or "utf-8"
    return text.encode(known, "replace").decode(known)
