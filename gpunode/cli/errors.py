"""What goes to stderr: a line, or an error as problem, evidence, remedy; and the same as JSON to stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gpunode.errors import GpunodeError
from gpunode.render.clean import clean_line
from gpunode.render.door import show
from gpunode.render.remedy_text import remedy_text
from gpunode.render.style import PLAIN, Style, hang, paint, style_for


def say(text: str, *, end: str = "\n") -> None:
    """One line on stderr, and never more, whatever a host calls its units; stdout is for the result."""
    show(clean_line(text), sys.stderr, end=end)


def say_error(error: GpunodeError, hosts: Sequence[str] = ()) -> None:
    """`hosts`: those that the error is about and that were reached over SSH."""
    style = style_for(sys.stderr)
    show(error_text(error, style, hosts), sys.stderr, painted=style.colour)


def error_text(error: GpunodeError, style: Style = PLAIN, hosts: Sequence[str] = ()) -> str:
    """The three parts, aligned; a part that is empty is left out."""
    lines = hang(style, paint(style, "bad", "gpunode: "), error.problem, lead_width=9)
    if error.evidence:
        lines += hang(style, "  evidence  ", error.evidence)
    if error.remedy:
        lines += hang(style, "  remedy    ", remedy_text(error.remedy, hosts))
    return "\n".join(lines)


def asked_format(words: Sequence[str]) -> str:
    """The format that was typed, read from the words themselves: they may be what is wrong. "" for none."""
    form = ""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if word == "--":
            break
        if word == "--json":
            form = "json"
        elif word == "--format":
            form = following
        elif word.startswith("--format="):
            form = word.partition("=")[2]
    return form


def print_error_json(error: GpunodeError, *, line: bool) -> None:
    """To stdout, also where the result was to go to --output: that file is not changed."""
    from gpunode.cli.options.groups import ResultOptions
    from gpunode.cli.output import deliver
    from gpunode.render.machine import error_json

    try:
        deliver(error_json(error, line=line), ResultOptions(json=True))
    except GpunodeError as unprinted:
        say_error(unprinted)
