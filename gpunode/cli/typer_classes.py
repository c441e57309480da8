"""What typer makes verbs of: help under headings, by click's formatter (rich costs 60 ms); words for unknown ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from typer.core import TyperCommand, TyperGroup

from gpunode.errors import UsageError

if TYPE_CHECKING:
    from gpunode.remedy import Remedy

OWN = "Options"  # the heading of what no group has
BARE = {"--retry-failed": "last"}  # options whose value may be left out, and what it is then; typer has none of these


class GroupedCommand(TyperCommand):
    """A verb whose options stand below headings, in the order in which they first come; `rich_help_panel` holds it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        filled = _filled(args)
        _refuse_twice(self.make_parser(ctx).parse_args(list(filled))[2])
        return super().parse_args(ctx, filled)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], OWN: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(_heading(parameter), []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _filled(args: list[str]) -> list[str]:
    """`args` with the value of each bare option that has none."""
    filled: list[str] = []
    for word, following in zip(args, [*args, "-"][1:], strict=True):
        filled += [word, BARE[word]] if word in BARE and following.startswith("-") else [word]
    return filled


def _refuse_twice(typed: list[click.Parameter]) -> None:
    """Raises UsageError for an option with one value that stands twice among these, in the order in which they were
    typed: click takes the last value, and what the first one named would not be looked at.
    """
    once = [one for one in typed if isinstance(one, click.Option) and not (one.multiple or one.is_flag or one.count)]
    for place, one in enumerate(once):
        if one in once[:place]:
            raise UsageError(
                f"{max(one.opts, key=len)} is there twice",
                evidence="it has one value: the other would be ignored",
                remedy="leave one of them out",
            )


def _heading(parameter: click.Parameter) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or OWN


class VerbGroup(TyperGroup):
    """Verbs, of which one is proposed for a misspelt one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise _unknown_verb(args[0], self, ctx)
        return super().resolve_command(ctx, args)


def _unknown_verb(name: str, group: click.Group, ctx: click.Context) -> UsageError:
    from gpunode.advice import meant

    known = group.commands
    return UsageError(
        f"no such command: {name}",
        evidence=f"{meant(name, known)}the commands are {', '.join(known)}",
        remedy=help_of(ctx),
    )


def unknown_option(error: click.NoSuchOption, root: click.Command) -> UsageError:
    """No such option of this verb: the verbs that have it as it was typed, else the close one that this verb has."""
    from gpunode.advice import meant

    name = error.option_name
    here = error.ctx.command if error.ctx else root
    verbs = [path for path, verb in _verbs(root) if name in _flags(verb)]
    evidence = f"it is an option of {', '.join(verbs)}" if verbs else meant(name, _flags(here)).strip()
    return UsageError(f"no such option: {name}", evidence=evidence, remedy=help_of(error.ctx))


def help_of(ctx: click.Context | None) -> Remedy:
    from gpunode.remedy import Remedy, RepairAction, gpunode

    verb = (ctx.command_path if ctx else "").partition(" ")[2]
    return Remedy(RepairAction.NONE, gpunode(verb, "--help", ssh=False), " lists what there is")


def _flags(command: click.Command) -> list[str]:
    return [flag for p in command.params for flag in (*p.opts, *p.secondary_opts) if flag.startswith("-")]


def _verbs(command: click.Command, path: str = "gpunode") -> Iterator[tuple[str, click.Command]]:
    """Every verb below with the words that reach it: ("gpunode runtime show", ...)."""
    for name, verb in getattr(command, "commands", {}).items():
        yield f"{path} {name}", verb
        yield from _verbs(verb, f"{path} {name}")
