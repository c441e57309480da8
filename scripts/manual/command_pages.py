"""The pages about verbs: what `--help` shows of each, as Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import click

from gpunode.cli.commands import _tree

EXAMPLE = re.compile(r"^  (gpunode .*?)(?: {2,}(.*))?$")


def pages() -> dict[str, str]:
    """A page for each verb: its name ("setup", "k8s") to Markdown. A verb that has verbs has them on its page."""
    root = _tree()
    assert isinstance(root, click.Group)
    return {name: _page(root.commands[name], f"gpunode {name}") for name in root.commands}


def _page(command: click.Command, words: str) -> str:
    return "\n".join(_lines(command, words, 1)) + "\n"


def _lines(command: click.Command, words: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=words, help_option_names=["-h", "--help"])
    yield from (f"{'#' * level} {words}", "", _text(command.help or ""), "")
    if not isinstance(command, click.Group) or command.params:
        yield from ("```text", command.get_usage(context).removeprefix("Usage: "), "```", "")
    yield from _examples(command.epilog or "")
    for heading, records in _sections(command, context).items():
        yield from (f"**{heading}**", "", "| | |", "|---|---|")
        yield from (f"| `{_cell(name)}` | {_text(_cell(said))} |" for name, said in records)
        yield ""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _lines(inner, f"{words} {name}", level + 1)


def _examples(epilog: str) -> Iterator[str]:
    found = [match for line in epilog.splitlines() if (match := EXAMPLE.match(line))]
    if found:
        yield from ("```sh", *(f"{m[1]}{f'  # {m[2]}' if m[2] else ''}" for m in found), "```", "")


def _sections(command: click.Command, context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Headings as in the help, in their order, to what stands below each: the option as it is typed, what it does."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
            heading = getattr(parameter, "rich_help_panel", None) or plain
            sections.setdefault(heading, []).append(record)
    return sections


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(text: str) -> str:
    """A help text as Markdown: what stands in it means nothing but itself."""
    plain = html.escape(text.replace("\b", "").strip(), quote=False)
    return re.sub(r"([*_`\[\]])", r"\\\1", plain)
