"""The page of `gpunode --help`, written down: to make it takes all verbs with all their options, and 200 ms.

It is click's own, word for word (tests/cli/test_root_page.py holds it to that, and writes it anew), for the widths that
terminals and pipes have. For any other width click makes it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

WORDS: tuple[list[str], ...] = ([], ["-h"], ["--help"])  # what asks for the page
COMPLETES = "_GPUNODE_COMPLETE"  # set by a shell that completes a command line: it types no words
MOST = 100  # columns: the page becomes no wider
WIDTHS = (80, MOST)


def root_page(words: Sequence[str]) -> str | None:
    """None where these words ask for something else, or nobody wrote the page down that they ask for."""
    if list(words) not in WORDS or COMPLETES in os.environ:
        return None
    from gpunode.resources import text  # not before the look at this machine: it loads pathlib

    columns = min(_columns(), MOST)
    return text(page_file(columns)) if columns in WIDTHS else None


def page_file(columns: int) -> str:
    """Where the page for this width lies in the package."""
    return f"cli/start/root_page_{columns}.txt"


def _columns() -> int:
    """shutil.get_terminal_size().columns, which click asks; to load shutil takes 4 ms."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns > 0:
        return columns
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]  # None: below
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return 80
