"""The tree of verbs, and click's own complaints turned into ours."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click
import typer

from gpunode.cli.start.root_page import WORDS
from gpunode.cli.typer_classes import VerbGroup, help_of, unknown_option
from gpunode.errors import UsageError

VERBS = (
    *("detect", "plan", "setup", "check", "undo", "lock", "bundle", "runs", "runtime", "k8s", "export"),
    *("catalog", "self"),
)


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print the version.", show_default=False),
) -> None:
    """`gpunode --version` alone is answered by app.py, before typer is loaded; here it stands among other words."""
    from gpunode.render.door import show

    if version:
        from gpunode import __version__

        show(f"gpunode {__version__}", sys.stdout)
        raise typer.Exit
    if context.invoked_subcommand is None:
        show(context.get_help(), sys.stdout)


def _tree(verbs: Sequence[str] = VERBS, *, listed: bool = False) -> click.Command:
    """The command with these verbs. To make each costs a few milliseconds, and a command line has one.

    `listed`: for the page that only names them; they have no options then, and run nothing.
    """
    app = typer.Typer(
        name="gpunode",
        cls=VerbGroup,
        help="Turn a bare Linux host with NVIDIA GPUs into a node whose GPUs Docker and Kubernetes can schedule.",
        epilog="\b\nExamples:\n  gpunode plan                  what setup would do on this machine, and why\n"
        "  gpunode setup --ssh gpu[01-12]  set up twelve hosts side by side",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_root)
    for verb in verbs:
        import_module(f"gpunode.cli.verbs.{verb}").register(app)
    if listed:
        _leave_out_options(app)
    return typer.main.get_command(app)


def command_tree() -> click.Command:
    """Every verb with all its options: what man pages and completion are made of."""
    return _tree()


def _leave_out_options(app: typer.Typer) -> None:
    for command in app.registered_commands:
        command.callback = _listed_only
    for group in app.registered_groups:
        group.typer_instance = typer.Typer(help=group.typer_instance.info.help if group.typer_instance else None)
        group.typer_instance.command("verb")(_listed_only)


def _listed_only() -> None:
    raise AssertionError("this verb is only there to be named")


def run_words(words: list[str]) -> int:
    """Parse and run. Raises UsageError for what click does not understand, KeyboardInterrupt for Ctrl-C."""
    command = _tree(words[:1] if words and words[0] in VERBS else VERBS, listed=words in WORDS)
    try:
        result = command.main(args=words, prog_name="gpunode", standalone_mode=False)
    except click.UsageError as error:
        raise _ours(error) from error
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    return result if isinstance(result, int) else 0


def _ours(error: click.UsageError) -> UsageError:
    if isinstance(error, click.NoSuchOption):
        return unknown_option(error, _tree())
    return UsageError(_sentence(error), remedy=help_of(error.ctx))


def _sentence(error: click.UsageError) -> str:
    """click ends a sentence with a dot and begins it with a capital; ours do neither."""
    text = error.format_message().rstrip(".")
    return text[:1].lower() + text[1:]
