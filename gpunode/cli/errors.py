"""What goes to stderr: a line, or an error as problem, evidence, remedy."""

from __future__ import annotations

import sys

from gpunode.errors import GpunodeError
from gpunode.render.clean import clean_line
from gpunode.render.door import show
from gpunode.render.style import PLAIN, Style, hang, paint, style_for


def say(text: str, *, end: str = "\n") -> None:
    """One line on stderr, and never more, whatever a host calls its units; stdout is for the result."""
    show(clean_line(text), sys.stderr, end=end)


def say_error(error: GpunodeError) -> None:
    style = style_for(sys.stderr)
    show(error_text(error, style), sys.stderr, painted=style.colour)


def error_text(error: GpunodeError, style: Style = PLAIN) -> str:
    """The three parts, aligned; a part that is empty is left out."""
    lines = hang(style, paint(style, "bad", "gpunode: "), error.problem, lead_width=9)
    if error.evidence:
        lines += hang(style, "  evidence  ", error.evidence)
    if error.remedy:
        lines += hang(style, "  remedy    ", error.remedy)
    return "\n".join(lines)
