"""Where the result goes and how much is printed on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gpunode.advice import meant
from gpunode.cli.options.groups import FileOptions, OutputOptions, QuietOptions, ResultOptions
from gpunode.cli.streams import why_unwritten
from gpunode.errors import GpunodeError, UsageError
from gpunode.masking import masked
from gpunode.offline import output_file
from gpunode.render.door import cleaned, encodable, show
from gpunode.render.style import Style, style_for

# Formats whose renderers mask value by value: masked once more as text, they could lose the form that programs read.
_WHOLE = ("json", "jsonl", "junit", "prometheus", "nvsentinel", "html")
# What other users' programs read from a file (node_exporter's): names and numbers, and nothing that is to be hidden.
_FOR_ALL = ("prometheus",)


def chosen_format(options: ResultOptions, formats: tuple[str, ...], *, plans: bool = False) -> str:
    """One of `formats`. Raises UsageError, also where --output could not be written afterwards: nothing was done yet.

    `plans`: the verb shows plans on stderr, whatever the format of its result, and -v is for them as well.
    """
    if options.json and options.format not in (None, "json"):
        raise UsageError(f"--json and --format {options.format} exclude each other", remedy="choose one")
    chosen = "json" if options.json else options.format or "text"
    if chosen not in formats:
        raise UsageError(
            f"--format {chosen!r} is not a format of this result",
            evidence=f"{meant(chosen, formats)}its formats are {', '.join(formats)}",
            remedy="choose one of them with --format",
        )
    _refuse_unread(options, chosen, plans)
    if options.output:
        output_file.check(options.output, "--output")
    return chosen


def _refuse_unread(options: ResultOptions, chosen: str, plans: bool) -> None:
    """Raises UsageError for -q and -v where each takes the other's effect, and for -v where no text is printed."""
    if not isinstance(options, OutputOptions) or not options.verbose:
        return
    if options.quiet:
        raise UsageError("-q and -v exclude each other", remedy="choose one")
    if chosen != "text" and not plans:
        raise UsageError(f"-v is for text; {chosen} is whole without it", remedy="leave -v out")


def result_style(options: ResultOptions) -> Style:
    """For stdout, or for a file, which has neither width nor colour."""
    level = verbosity(options)
    return Style(verbose=level) if options.output else style_for(sys.stdout, verbose=level)


def progress_style(options: QuietOptions) -> Style:
    return style_for(sys.stderr, verbose=verbosity(options))


def show_beforehand(render: Callable[[Style], str], options: QuietOptions) -> None:
    """What would change, on stderr: stdout is for the result, and the question follows on the terminal."""
    style = progress_style(options)
    if not options.quiet and (text := render(style)):
        show(text, sys.stderr, end="\n\n", painted=style.colour)


def verbosity(options: ResultOptions) -> int:
    """-1 with -q; else the count of -v, 0 where a verb has none."""
    if isinstance(options, QuietOptions) and options.quiet:
        return -1
    return options.verbose if isinstance(options, OutputOptions) else 0


def deliver(text: str | Iterable[str], options: ResultOptions) -> None:
    """The result to stdout or to --output, cleaned, text masked once more: JSON and its like are whole already.

    What comes in pieces goes on in pieces, and is never in memory as a whole. So a fault of ours in a later piece
    leaves half a document on stdout, the error behind it, and exit code 1; --output has all of it, or the old file.
    """
    if isinstance(text, str):
        text = (text,) if options.json or options.format in _WHOLE else (masked(text, "lines"),)
    if options.output:
        mode = 0o644 if options.format in _FOR_ALL else 0o600
        to_file(options.output, (cleaned(piece, painted=False) for piece in _gathered(text)), "--output", mode=mode)
    else:
        encoding = _encoding(options)
        painted = is_terminal() and style_for(sys.stdout).colour
        for piece in output_file.ended(cleaned(piece, painted=painted) for piece in _gathered(text)):
            to_stdout(encodable(piece, encoding).encode(encoding))


def _encoding(options: ResultOptions) -> str:
    """UTF-8 for programs, whatever the locale: their formats are defined so. A terminal has its own: a byte of UTF-8
    may be a control character there.
    """
    for_programs = options.json or options.format not in (None, "text")
    return "utf-8" if for_programs and not is_terminal() else sys.stdout.encoding or "ascii"


_AT_ONCE = 65536  # characters that are written together


def _gathered(pieces: Iterable[str]) -> Iterator[str]:
    """The same in fewer pieces."""
    held: list[str] = []
    number = 0
    for piece in pieces:
        held.append(piece)
        number += len(piece)
        if number >= _AT_ONCE:
            yield "".join(held)
            held, number = [], 0
    yield "".join(held)


def deliver_file(text: str, options: FileOptions | ResultOptions) -> None:
    """What gpunode made for another program, to stdout or to --output; whole, since nothing secret is in it."""
    to_file(options.output or Path(output_file.STDOUT[0]), text, "--output")


def to_file(path: Path, text: str | Iterable[str], flag: str, *, mode: int = 0o600) -> None:
    """`text` to a file of the user's; the names of stdout mean stdout, as they do for a shell. A terminal gets it
    cleaned, whatever it is called.
    """
    if output_file.is_stdout(path):
        for piece in output_file.ended((text,) if isinstance(text, str) else text):
            shown = cleaned(piece, painted=False) if is_terminal() else piece
            to_stdout(shown.encode("utf-8", "surrogateescape"))
    else:
        output_file.write_whole(path, text, flag, mode=mode)


def is_terminal() -> bool:
    """Whether a terminal reads stdout; a pipe gets a file's bytes as they are."""
    return sys.stdout.isatty()


class Reader:
    """Whoever reads stdout, where that is a pipe."""

    left = False


def to_stdout(data: bytes) -> None:
    """Raises GpunodeError where stdout is closed or full. A reader that has left (head, less) has seen enough."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        # Python flushes stdout once more at exit, and that must not fail as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            Reader.left = True
            return
        problem = f"the result cannot be printed: {why_unwritten(error) or error.strerror}"
        raise GpunodeError(
            problem, evidence="what was asked for was done", remedy="--output FILE keeps the result"
        ) from error
