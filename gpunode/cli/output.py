"""Where the result goes and how much is said on the way."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from gpunode.cli.options import OutputOptions
from gpunode.cli.streams import why_unwritten
from gpunode.errors import GpunodeError, UsageError
from gpunode.render.door import cleaned, encodable
from gpunode.render.style import Style, style_for

FORMATS = ("text", "json", "jsonl")


def chosen_format(options: OutputOptions) -> str:
    """One of FORMATS. Raises UsageError."""
    chosen = "json" if options.json and options.format == "text" else options.format
    if chosen not in FORMATS:
        raise UsageError(
            f"--format {chosen!r} is not a format",
            evidence=f"the formats are {', '.join(FORMATS)}",
            remedy="choose one of them with --format",
        )
    return chosen


def result_style(options: OutputOptions) -> Style:
    """For stdout, or for a file, which has neither width nor colour."""
    level = verbosity(options)
    return Style(verbose=level) if options.output else style_for(sys.stdout, verbose=level)


def progress_style(options: OutputOptions) -> Style:
    return style_for(sys.stderr, verbose=verbosity(options))


def verbosity(options: OutputOptions) -> int:
    return -1 if options.quiet else options.verbose


def deliver(text: str, options: OutputOptions) -> None:
    """The result to stdout or to --output, cleaned: JSON has its own escapes and is the same afterwards."""
    if options.output:
        write_whole(options.output, cleaned(text, painted=False), "--output")
    else:
        encoding = sys.stdout.encoding or "ascii"
        whole = cleaned(text, painted=is_terminal() and style_for(sys.stdout).colour)
        to_stdout(encodable(whole if whole.endswith("\n") else whole + "\n", encoding).encode(encoding))


def is_terminal() -> bool:
    """Whether a terminal reads stdout; a pipe gets a file's bytes as they are."""
    return sys.stdout.isatty()


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
            return
        problem = f"the result cannot be printed: {why_unwritten(error) or error.strerror}"
        raise GpunodeError(
            problem, evidence="what was asked for was done", remedy="--output FILE keeps the result"
        ) from error


def check_writable(options: OutputOptions) -> None:
    """Raises UsageError before anything is done, where --output could not be written afterwards."""
    if options.output and not os.access(options.output.parent, os.W_OK | os.X_OK):
        why = OSError(0, "its folder is not there, or is not yours to write to")
        raise _unwritable(options.output, "--output", why)


def write_whole(path: Path, text: str, flag: str) -> None:
    """`text` into `path`: the old file or the whole new one. Mode 0600, since it describes hosts. Raises UsageError."""
    try:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, flag, error) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text if text.endswith("\n") else text + "\n")
        os.replace(beside, path)
    except OSError as error:
        Path(beside).unlink(missing_ok=True)
        raise _unwritable(path, flag, error) from error


def _unwritable(path: Path, flag: str, error: OSError) -> UsageError:
    return UsageError(
        f"{flag} {path} cannot be written",
        evidence=error.strerror or str(error),
        remedy="name a file in a folder of yours",
    )
