"""Text cut down to one line, of which a person can still use what is there: words are whole, and so are commands."""

from __future__ import annotations

import re

from gpunode.masking import masked
from gpunode.regex import regex
from gpunode.render.clean import clean_line

MORE = " …"
LONG_WORD = 16  # characters; of a longer one the beginning says more than nothing
# Between these a sentence of advice can end; not within what is quoted or in parentheses, which may be a command's.
_BETWEEN = regex(
    r"""(?P<within>`[^`]*`|"[^"]*"|(?<!\w)'[^']*'|\([^()]*\))
    |(?P<end>;[ ]|[.][ ](?=[A-Z])|[ ](?=\()
      |,[ ](?=(?:and|or|then|which|where|so|until|unless|if|after|before)\b))  # a comma between things is none
    """,
    re.VERBOSE,
)


def in_line(text: str) -> str:
    """One line of what may have had several, without secrets and what a terminal obeys. Before anything is cut off."""
    return clean_line(" ".join(masked(text, "lines").split()))


def shortened(text: str, width: int) -> str:
    """As many whole words as fit, or clauses where that is not much less, and a mark in the place of the others.

    A long word is cut.
    """
    if len(text) <= width:
        return text
    room = width - len(MORE)
    words = text[: room + 1].rpartition(" ")[0]
    words = words if words and room - len(words) <= LONG_WORD else text[:room]
    clause = max(words.rfind(end) for end in (": ", "; ", ", "))
    return (words[:clause] if clause > width // 2 else words).rstrip(" ,;:(") + MORE


def whole_clauses(text: str, width: int) -> str:
    """As many clauses of advice as fit, and at least one: half a command is another command."""
    ends = [found.start() for found in _BETWEEN.finditer(text) if found["end"]]
    if len(text) <= width or not ends:
        return text
    return text[: max((end for end in ends if end + len(MORE) <= width), default=ends[0])] + MORE
