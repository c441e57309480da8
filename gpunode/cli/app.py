"""The console script: argv in, exit code out. Errors become words here, and in fleet/run.py; nowhere else.

Start-up counts: `--version` loads nothing, `--help` loads typer only, a verb loads what it needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gpunode.cli.first_look import looking_ahead
from gpunode.cli.streams import fill_closed_streams, why_unwritten
from gpunode.errors import ExitCode, GpunodeError

INTERRUPTED = 130  # 128 + SIGINT, as in shells


def run() -> None:
    """What the `gpunode` command calls."""
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and answer its exit code. Prints; raises nothing that the user could have caused."""
    words = list(sys.argv[1:] if argv is None else argv)
    fill_closed_streams()
    try:
        code = _version() if words in (["--version"], ["-V"]) else _verb(words)
        sys.stdout.flush()
    except GpunodeError as error:
        _say_error(error, words)
        return int(error.code)
    except KeyboardInterrupt:
        _say("gpunode: interrupted; run the same command again to continue")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has left. Python flushes stdout once more at exit, and that must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.DONE)
    except Exception as error:
        why = why_unwritten(error)
        if why is None:
            return _say_crash(error, words)
        _say(f"gpunode: this cannot be printed: {why}")
        return int(ExitCode.FAILED)
    return code


def _version() -> int:
    from gpunode import __version__

    sys.stdout.write(f"gpunode {__version__}\n")  # nothing of anybody else's is in it, and nothing is loaded for it
    return int(ExitCode.DONE)


def _verb(words: list[str]) -> int:
    with looking_ahead(words):
        with _rich_out_of_sight():
            from gpunode.cli.commands import run_words

        return run_words(words)


@contextmanager
def _rich_out_of_sight() -> Iterator[None]:
    """typer loads rich (60 ms) for a help page that we do not use; where there is no rich it takes plain click."""
    hide = "rich" not in sys.modules
    if hide:
        sys.modules["rich"] = None  # type: ignore[assignment]  # makes `import rich` raise ImportError
    try:
        yield
    finally:
        if hide:
            del sys.modules["rich"]


def _say_error(error: GpunodeError, words: Sequence[str]) -> None:
    from gpunode.cli.errors import say_error

    say_error(error)
    _print_error(error, words)


def _print_error(error: GpunodeError, words: Sequence[str]) -> None:
    """To stdout for a program that asked for JSON: an empty answer would say nothing."""
    from gpunode.cli.errors import asked_format, print_error_json

    if (form := asked_format(words)) in ("json", "jsonl"):
        print_error_json(error, line=form == "jsonl")


def _say(text: str) -> None:
    from gpunode.cli.errors import say

    say(text)


def _say_crash(error: Exception, words: Sequence[str] = ()) -> int:
    """One line for the user, the traceback for the report."""
    from gpunode.fleet.run_log import save_crash

    path = save_crash(error)
    kept = f"the details are in {path}" if path else "the details could not be saved anywhere"
    problem = f"internal error ({type(error).__name__}); please report it: {kept}"
    _say(f"gpunode: {problem}")
    _print_error(GpunodeError(problem), words)
    return int(ExitCode.FAILED)
