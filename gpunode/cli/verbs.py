"""The tree of verbs, and typer's own complaints turned into ours."""

from __future__ import annotations

import sys

# typer loads rich (60 ms) for a help page that we do not use: with rich out of sight it takes plain click instead.
_hide = "rich" not in sys.modules
if _hide:
    sys.modules["rich"] = None  # type: ignore[assignment]  # makes `import rich` raise ImportError
try:
    import typer
finally:
    if _hide:
        del sys.modules["rich"]

import click

from gpunode.cli import catalog, check, detect, plan, setup
from gpunode.errors import UsageError

app = typer.Typer(
    name="gpunode",
    help="Turn a bare Linux host with NVIDIA cards into a node whose GPUs Docker and Kubernetes can schedule.",
    epilog="\b\nExamples:\n  gpunode plan                  what setup would do on this machine, and why\n"
    "  gpunode setup --ssh gpu[01-12]  set up twelve hosts side by side",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version.", show_default=False),
) -> None:
    """Only for `--version` in the help; app.py answers it before typer is loaded."""


for _module in (detect, plan, setup, check, catalog):
    _module.register(app)


def run_words(words: list[str]) -> int:
    """Parse and run. Raises UsageError for what click does not understand, KeyboardInterrupt for Ctrl-C."""
    command = typer.main.get_command(app)
    try:
        result = command.main(args=words, prog_name="gpunode", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.UsageError as error:
        raise UsageError(_sentence(error), remedy=_help_of(error)) from error
    except click.ClickException as error:
        raise UsageError(error.format_message()) from error
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    return result if isinstance(result, int) else 0


def _sentence(error: click.UsageError) -> str:
    """click ends a sentence with a dot and begins it with a capital; ours do neither."""
    text = error.format_message().rstrip(".")
    return text[:1].lower() + text[1:]


def _help_of(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx else "gpunode"
    return f"{path} --help lists what there is"
