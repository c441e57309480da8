"""How text meets the terminal: its width, whether it has colour, and lines that hang under their first word."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TextIO

from gpunode.masking import masked
from gpunode.render.clean import clean
from gpunode.values import dataclass

# In xterm's palette red and magenta have a contrast above 3 to 1 on black and on white; yellow has 1.1 on white. Green
# has 2.1 there, and is only for what is fine.
CODES = {"bad": "31;1", "warn": "35;1", "good": "32", "head": "1", "dim": "2"}
# A number of this process alone, which the door takes out: colours that a host writes are not painted (render/door.py).
OURS = int.from_bytes(os.urandom(8), "big")


@dataclass(frozen=True)
class Style:
    width: int = 100  # columns
    colour: bool = False
    verbose: int = 0  # -q is -1, -v is 1
    live: bool = False  # the terminal can redraw: live table instead of plain lines


PLAIN = Style()


def style_for(stream: TextIO, *, verbose: int = 0) -> Style:
    """What `stream` can show. NO_COLOR (no-color.org) and TERM=dumb take colour away; a pipe has none."""
    terminal = stream.isatty()
    term = os.environ.get("TERM", "")
    colour = terminal and not os.environ.get("NO_COLOR") and term not in ("", "dumb")
    width = _columns(stream, terminal)
    return Style(max(40, min(width, 160)), colour, verbose, terminal and term not in ("", "dumb"))


def _columns(stream: TextIO, terminal: bool) -> int:
    """COLUMNS counts for a pipe as well: shells do not export it by themselves, so somebody wanted it."""
    typed = os.environ.get("COLUMNS", "")
    if re.fullmatch(r"[1-9][0-9]{0,5}", typed):
        return int(typed)
    return (os.get_terminal_size(stream.fileno()).columns or 80) if terminal else 100


def paint(style: Style, meaning: str, text: str) -> str:
    """`text` in the colour of "bad", "warn", "good", "head" or "dim", for the door; as it is without colour."""
    return f"\x1b[{CODES[meaning]};{OURS}m{text}\x1b[0;{OURS}m" if style.colour and text else text


def hang(style: Style, lead: str, text: str, *, lead_width: int | None = None) -> list[str]:
    """`lead` then `text`, wrapped so that later lines start under the text's first word.

    `lead` may hold colour, so its visible width is given where it does. Where under 24 columns would be left for the
    text, it starts on a line of its own, four in.
    """
    indent = len(lead) if lead_width is None else lead_width
    head: list[str] = []
    if style.width - indent < 24:
        head, lead, indent = [lead.rstrip()], " " * 4, 4
    lines = [
        piece
        for line in clean(masked(text, "lines")).split("\n")
        for piece in textwrap.wrap(line, max(20, style.width - indent), break_long_words=False, break_on_hyphens=False)
        or [""]
    ]
    return head + [((lead if i == 0 else " " * indent) + line).rstrip() for i, line in enumerate(lines)]
