"""The console script: argv in, exit code out.

Start-up counts: `--version` and `--help` load nothing, a verb loads what it needs. A verb that looks at
this machine looks first, and all else is loaded meanwhile: what stands up here is loaded before that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from gpunode.cli.start.first_look import LOOKS, at_this_machine, looking_ahead
from gpunode.cli.start.root_page import root_page
from gpunode.cli.start.verdict_words import NO_VERDICT, asks_for_verdict
from gpunode.cli.streams import fill_closed_streams


def run() -> None:
    """What the `gpunode` command calls."""
    code = main()
    if at_this_machine(sys.argv[1:]):
        _leave(code)
    sys.exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and answer its exit code. Prints; raises nothing that the user could have caused."""
    words = list(sys.argv[1:] if argv is None else argv)
    fill_closed_streams()
    try:
        text = _version() if words in (["--version"], ["-V"]) else root_page(words)
        code = _verb(words) if text is None else 0
        sys.stdout.write(text or "")  # ours alone: nothing of anybody else's is in it, and nothing is loaded for it
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return _ended(error, words)
    return code


def _ended(error: Exception | KeyboardInterrupt, words: list[str]) -> int:
    """Say what ended this command line. What breaks a verdict leaves none, also where not even that can be said: our
    own code, and Python's, would have a whole cluster drained where memory is short or a log's disk is full.
    """
    try:
        from gpunode.cli.errors import ended_by

        code = ended_by(error, words)
    except Exception as unsaid:
        if not asks_for_verdict(words):
            raise
        sys.excepthook(type(unsaid), unsaid, unsaid.__traceback__)
        return NO_VERDICT
    broke = isinstance(error, Exception) and asks_for_verdict(words)  # and was not interrupted
    return NO_VERDICT if broke else code


def _version() -> str:
    from gpunode import __version__

    return f"gpunode {__version__}\n"


def _verb(words: list[str]) -> int:
    with looking_ahead(words):
        if words in LOOKS:
            from gpunode.cli.options.verb import with_defaults

            return with_defaults(words[0])
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


def _leave(code: int) -> None:
    """At once: to take down modules and objects one by one takes Python 35 ms, and there is nothing to clean up.

    The result is flushed (main), no script runs any more (looking_ahead), and no thread of ours holds anything.
    """
    with suppress(OSError, ValueError):  # nobody reads it
        sys.stderr.flush()
    os._exit(code)
