"""gpunode runs: earlier runs over hosts, one of them host by host, or several as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options.groups import ResultOptions, RunResultOptions, option
from gpunode.cli.options.verb import spread, verb
from gpunode.cli.typer_classes import VerbGroup

if TYPE_CHECKING:
    from gpunode.cli.results import RunList, RunShown
    from gpunode.model.run_record import PastRun
    from gpunode.render.style import Style

MOST = 20  # that are listed where nobody says how many


def register(app: typer.Typer) -> None:
    runs = typer.Typer(
        cls=VerbGroup,
        help="List the runs that changed hosts, newest first; show one, or merge several. Asks no host.",
        rich_markup_mode=None,
        epilog="\b\nExamples:\n  gpunode runs\n  gpunode runs show last",
        invoke_without_command=True,
    )
    runs.callback()(spread(listed))
    verb(
        runs,
        "show",
        help="Show how each host of a run ended, equal endings once, and the failed ones as an argument to paste.",
        examples=(
            "gpunode runs show last",
            "gpunode runs show 20261121T145501Z-4711 --json",
            "gpunode runs show last --format ansible --output left.yml",
        ),
    )(show)
    verb(
        runs,
        "merge",
        help="Show several runs as one: the shards of an inventory. Ends with the worst code of their hosts.",
        examples=(
            "gpunode runs merge 20261121T145501Z-4711 20261121T145502Z-4712",
            "gpunode runs merge shard-*/ --json",
        ),
    )(merge)
    app.add_typer(runs, name="runs")


def listed(
    context: typer.Context,
    output: ResultOptions,
    last: Annotated[str | None, option("--last", metavar="N", help="How many (default 20).")] = None,
) -> int:
    from gpunode.cli.errors import say
    from gpunode.cli.hosts import whole_number
    from gpunode.cli.options.groups import typed
    from gpunode.cli.results import RunList, choose, show_result
    from gpunode.errors import UsageError
    from gpunode.fleet.runs.directory import runs_home
    from gpunode.fleet.runs.read import latest
    from gpunode.model.run_record import PastRun

    if context.invoked_subcommand is not None:
        if wrong := [*typed(output), *(["--last"] if last else [])]:
            raise UsageError(f"{wrong[0]} is typed behind {context.invoked_subcommand}", remedy="type it at the end")
        return 0
    choose(output, RunList)
    ids, more = latest(whole_number("--last", last, 1, 1000) or MOST)
    runs, odd = list[PastRun](), list[str]()
    for run_id in ids:
        try:
            runs.append(_in_the_list(run_id))
        except UsageError as error:
            odd.append(f"{error.problem}: {error.evidence}")
    show_result(RunList(runs, more, odd, str(runs_home())), output)
    for text in odd:
        say(f"gpunode: {text}")
    return 0


def _in_the_list(run_id: str) -> PastRun:
    """Its hosts are read only where its end does not say how they ended."""
    from gpunode.fleet.runs.read import read_header, read_run
    from gpunode.model.run_record import PastRun

    header = read_header(run_id)
    return PastRun(header, lives=False) if header.ended else read_run(run_id)


def show(
    output: RunResultOptions,
    run: Annotated[str, typer.Argument(metavar="ID|last", help="As `gpunode runs` lists it.", show_default=False)],
) -> int:
    from gpunode.cli.results import RunShown, choose, show_result
    from gpunode.fleet.runs.merge import merge as merged
    from gpunode.fleet.runs.read import find, read_run
    from gpunode.render.runs_text import commands_for

    choose(output, RunShown)
    past = read_run(find(run))
    show_result(RunShown(merged([past]), past.lives, commands_for(past)), output)
    return 0


def merge(
    output: RunResultOptions,
    runs: Annotated[
        list[str],
        typer.Argument(metavar="ID|DIRECTORY...", help="Runs of this controller, or copies of others' directories."),
    ],
) -> int:
    from gpunode.cli.results import RunShown, choose, show_result
    from gpunode.fleet.runs.merge import merge as merged
    from gpunode.model.run_record import code_of

    choose(output, RunShown)
    found = {(past.header.id, past.header.controller): past for past in map(_named, runs)}
    whole = merged(tuple(found.values()))
    show_result(RunShown(whole), output)
    return int(code_of(whole.hosts))


def _named(word: str) -> PastRun:
    """An id is a run of this controller; anything with a slash, or that is no id, a directory."""
    from gpunode.fleet.runs.header import ID
    from gpunode.fleet.runs.read import LAST, find, read_copy, read_run

    past = read_run(find(word)) if word == LAST or ID.fullmatch(word) else read_copy(Path(word))
    return replace(past, lives=None)


def listed_text(result: RunList, style: Style) -> str:
    from gpunode.render.runs_text import runs_text

    return runs_text(result.runs, result.more, style) if result.runs else f"no run is kept in {result.home}"


def listed_json(result: RunList, style: Style) -> str:
    from gpunode.render.runs_json import runs_json

    return runs_json(result.runs, result.more)


def listed_jsonl(result: RunList, style: Style) -> str:
    from gpunode.render.runs_json import runs_lines

    return runs_lines(result.runs)


def shown_text(result: RunShown, style: Style) -> str:
    from gpunode.render.runs_text import run_shown_text

    return run_shown_text(result.merged, style, lives=result.lives, again=result.again)


def shown_json(result: RunShown, style: Style) -> str:
    from gpunode.render.runs_json import shown_json as whole

    return whole(result.merged, result.lives)


def shown_jsonl(result: RunShown, style: Style) -> str:
    from gpunode.render.runs_json import shown_lines

    return "".join(shown_lines(result.merged))


def shown_ansible(result: RunShown, style: Style) -> str:
    from gpunode.fleet.runs.as_inventory import as_inventory

    return as_inventory(result.merged)
