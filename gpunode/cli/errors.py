"""What goes to stderr: a line, or an error as problem, evidence, remedy; and the same as JSON to stdout.

Errors become words here, and in fleet/run.py; nowhere else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from gpunode.cli.streams import why_unwritten
from gpunode.errors import ExitCode, GpunodeError
from gpunode.render.clean import clean_line
from gpunode.render.door import show
from gpunode.render.remedy_text import remedy_text
from gpunode.render.style import PLAIN, Style, hang, paint, style_for

INTERRUPTED = 130  # 128 + SIGINT, as in shells


def ended_by(error: Exception | KeyboardInterrupt, words: Sequence[str]) -> int:
    """Say what ended this command line, in the words of whoever may have caused it. Answers the exit code."""
    if isinstance(error, GpunodeError):
        say_error(error)
        _print_error(error, words)
        return int(error.code)
    if isinstance(error, KeyboardInterrupt):
        say("gpunode: interrupted; run the same command again to continue")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # The reader (head, less) has left. Python flushes stdout once more at exit, and that must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        page = not words or words[0].startswith("-")
        return int(ExitCode.DONE if page else ExitCode.FAILED)  # a verb that was cut short has said nothing
    why = why_unwritten(error)
    if why is None:
        return say_crash(error, words)
    say(f"gpunode: this cannot be printed: {why}")
    return int(ExitCode.FAILED)


def say_crash(error: Exception, words: Sequence[str] = ()) -> int:
    """One line for the user, the traceback for the report."""
    from gpunode.fleet.run_log import save_crash

    path = save_crash(error)
    kept = f"the details are in {path}" if path else "the details could not be saved anywhere"
    problem = f"internal error ({type(error).__name__}); please report it: {kept}"
    say(f"gpunode: {problem}")
    _print_error(GpunodeError(problem), words)
    return int(ExitCode.FAILED)


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


def _print_error(error: GpunodeError, words: Sequence[str]) -> None:
    """To stdout for a program that asked for JSON: an empty answer would say nothing."""
    if (form := asked_format(words)) in ("json", "jsonl"):
        print_error_json(error, line=form == "jsonl")


def print_error_json(error: GpunodeError, *, line: bool) -> None:
    """To stdout, also where the result was to go to --output: that file is not changed."""
    from gpunode.cli.options.groups import ResultOptions
    from gpunode.cli.output import deliver
    from gpunode.render.machine import error_json

    try:
        deliver(error_json(error, line=line), ResultOptions(json=True))
    except GpunodeError as unprinted:
        say_error(unprinted)
