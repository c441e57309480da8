"""What goes to stderr: errors as problem, evidence, remedy."""

from __future__ import annotations

import sys

from gpunode.errors import GpunodeError
from gpunode.render.style import hang, paint, style_for


def error_text(error: GpunodeError) -> str:
    """The three parts, aligned; a part that is empty is left out."""
    style = style_for(sys.stderr)
    lines = hang(style, paint(style, "bad", "gpunode: "), error.problem, lead_width=9)
    if error.evidence:
        lines += hang(style, "  evidence  ", error.evidence)
    if error.remedy:
        lines += hang(style, "  remedy    ", error.remedy)
    return "\n".join(lines)
