"""The verbs and options of gpunode as values, from the same tree that parses them: for man pages and completion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import click

from gpunode.cli.commands import command_tree

# In a metavar: "auto|none|VERSION" has two words to choose from and one to replace.
_CHOICE = re.compile(r"[a-z0-9][a-z0-9.-]*")
_FILES = re.compile(r"(?:\[GROUP=\])?(?:FILE|PATH|KUBECONFIG)\b")
_DIRECTORIES = re.compile(r"DIR(?:ECTORY)?\b")


OWN = "Options"  # the heading of what no group has


@dataclass(frozen=True)
class Option:
    flags: tuple[str, ...]  # ("-y", "--yes")
    value: str | None  # its metavar; None where it takes none
    help: str
    heading: str

    @property
    def choices(self) -> tuple[str, ...]:
        return choices_of(self.value)

    @property
    def takes_file(self) -> bool:
        return bool(self.value and _FILES.search(self.value))

    @property
    def takes_directory(self) -> bool:
        return bool(self.value and not self.takes_file and _DIRECTORIES.search(self.value))


@dataclass(frozen=True)
class Verb:
    path: tuple[str, ...]  # ("k8s", "labels"); () is gpunode itself
    usage: str  # what follows the name: "[OPTIONS] RUNTIME"
    help: str  # one paragraph
    examples: tuple[str, ...]
    arguments: tuple[str, ...]  # metavars
    options: tuple[Option, ...]  # in the order of --help
    verbs: tuple[Verb, ...]

    @property
    def name(self) -> str:
        """As its man page is called: "gpunode-k8s-labels"."""
        return "-".join(("gpunode", *self.path))

    def all(self) -> Iterator[Verb]:
        """It, and every one below it."""
        yield self
        for verb in self.verbs:
            yield from verb.all()


def choices_of(metavar: str | None) -> tuple[str, ...]:
    """The words of a metavar that can be typed as they are: none of "FILE", two of "auto|none|VERSION"."""
    words = (metavar or "").strip("[]").split("|")
    return tuple(word for word in words if _CHOICE.fullmatch(word)) if len(words) > 1 else ()


@cache
def command_line() -> Verb:
    """gpunode with all its verbs."""
    return _verb(command_tree(), (), None)


def _verb(command: click.Command, path: tuple[str, ...], parent: click.Context | None) -> Verb:
    context = click.Context(
        command, info_name=path[-1] if path else "gpunode", parent=parent, **command.context_settings
    )
    below = getattr(command, "commands", {})
    return Verb(
        path=path,
        usage=" ".join(command.collect_usage_pieces(context)),
        help=" ".join((command.help or "").split()),
        examples=_examples(command.epilog or ""),
        arguments=tuple(p.make_metavar() for p in command.params if isinstance(p, click.Argument)),
        options=tuple(_options(command, context)),
        verbs=tuple(_verb(verb, (*path, name), context) for name, verb in below.items()),
    )


def _options(command: click.Command, context: click.Context) -> Iterator[Option]:
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield Option(
                # Short ones first: click keeps the names of --help in a set, whose order is another in each process.
                flags=tuple(sorted((*parameter.opts, *parameter.secondary_opts), key=lambda flag: flag[:2] == "--")),
                value=None if parameter.is_flag or parameter.count else parameter.make_metavar(),
                help=" ".join((parameter.help or "").split()),
                heading=getattr(parameter, "rich_help_panel", None) or OWN,
            )


def _examples(epilog: str) -> tuple[str, ...]:
    """The lines below "Examples:"; a comment behind two spaces goes with its line."""
    _, found, lines = epilog.partition("Examples:")
    return tuple(line.strip() for line in lines.splitlines() if line.strip()) if found else ()
