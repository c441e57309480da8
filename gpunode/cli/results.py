"""What verbs end with, and the one table of who renders it: (format, result) -> text.

A new format is a line in TABLE for each result that has it. A pair that is not there is refused before a host is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from gpunode.cli.options.groups import QuietOptions, ResultOptions
from gpunode.cli.output import chosen_format, deliver, is_terminal, result_style
from gpunode.errors import GpunodeError, worst
from gpunode.render.style import Style
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.checks import CheckDoc
    from gpunode.fleet.host import Host
    from gpunode.model.report import FleetReport, HostOutcome
    from gpunode.model.run_record import MergedRuns, PastRun
    from gpunode.release.installed import Difference
    from gpunode.release.manifest import Release
    from gpunode.remedy import Command
    from gpunode.render.matrix.sight import Sight


@dataclass(frozen=True)
class Fleet:
    """What a verb found or did, host by host."""

    verb: str  # in the schema: "gpunode.VERB-result/1"
    report: FleetReport
    ssh: bool = False  # remedies name the hosts


class Detected(Fleet):
    """Facts."""


@dataclass(frozen=True)
class Planned(Fleet):
    """Plans that were not applied."""

    recorded: bool = False  # setup of a recording, which changes nothing
    apply: Command | None = None  # what applies the plan that was saved; None where none was, or of a recording


class Explained(Fleet):
    """Why these drivers."""


@dataclass(frozen=True)
class Checked(Fleet):
    """Checks."""

    strict: bool = False  # warnings count as failures
    at_s: float = 0.0  # when they ended, in seconds since the epoch
    sights: Mapping[str, Sight] = field(default_factory=dict)  # target -> what the page says of facts that are let go


class Ended(Fleet):
    """Plans that were applied."""


@dataclass(frozen=True)
class Fixed(Fleet):
    """Checks, what of their findings was mended, and what they say afterwards."""

    recorded: bool = False  # a recording, which only shows its plan


class Locked(NamedTuple):
    """`lock`."""

    data: dict[str, object]


class SelfChecked(NamedTuple):
    """`self check`."""

    release: Release
    place: str  # the directory that holds the package, or the zipapp
    differences: Sequence[Difference]


class RunList(NamedTuple):
    """`runs`."""

    runs: Sequence[PastRun]
    more: int  # older ones, which are not among them
    odd: Sequence[str]  # why others cannot be shown
    home: str  # where they are kept


class RunShown(NamedTuple):
    """`runs show` and `runs merge`."""

    merged: MergedRuns
    lives: bool | None = None  # the controller of the one run; None: it is not known, or they are several
    again: Sequence[Command] = ()  # what goes on with it


class Runtimes(NamedTuple):
    """`runtime show`."""

    report: FleetReport
    shown: dict[str, Any]  # target -> its engines


class Labelled(NamedTuple):
    """`k8s labels`."""

    report: FleetReport
    found: dict[str, Any]  # target -> its labels


class LabelsSet(NamedTuple):
    """`k8s labels --kubeconfig`."""

    report: FleetReport
    differences: dict[str, Any]  # target -> what was to change of its node


class Verified(NamedTuple):
    """`k8s verify`."""

    report: FleetReport
    chains: dict[str, Any]  # target -> the links of its chain
    ssh: bool = False  # remedies name the hosts


class Preflighted(NamedTuple):
    """`k8s preflight`."""

    report: FleetReport
    found: dict[str, Any]  # target -> its Preflight
    ssh: bool = False  # remedies name the hosts


class Configured(NamedTuple):
    """`runtime configure`."""

    wish: Any
    planned: Any
    backups: dict[str, str]


class Verdict(NamedTuple):
    """`check --npd` and `--nhc`."""

    code: int
    line: str


class UnitFile(NamedTuple):
    """`check --unit`."""

    kind: str  # "service" | "timer"
    argv: Sequence[str]  # what it runs


class CheckList(NamedTuple):
    docs: Sequence[CheckDoc]


class CheckPage(NamedTuple):
    docs: Sequence[CheckDoc]  # one


class CatalogTable(NamedTuple):
    name: str
    rows: Sequence[object]


class SupportPage:
    """docs/support.md: a page for people."""


class ChecksPage:
    """docs/reference/checks.md: a page for people; programs take `check --list`."""


class SchemaPage:
    """The JSON Schema of the results, or docs/reference/json.md around it."""


Renderer = Callable[[Any, Style], str | Iterator[str]]  # the result, also in pieces; "" shows nothing


def _in(place: str) -> Renderer:
    """A renderer next to its verb, loaded when it is used: "verbs.detect:page"."""
    module, _, name = place.partition(":")

    def render(result: Any, style: Style) -> str | Iterator[str]:
        shown: str | Iterator[str] = getattr(import_module(f"gpunode.cli.{module}"), name)(result, style)
        return shown

    return render


def _fleet_json(result: Fleet, style: Style) -> Iterator[str]:
    from gpunode.render.machine import hosts_json

    return hosts_json(result.verb, result.report.hosts, seconds_s=result.report.seconds)


def _fleet_lines(result: Fleet, style: Style) -> Iterator[str]:
    from gpunode.render.machine import host_line, line_rows

    rows = line_rows()
    return (host_line(result.verb, host, rows) for host in result.report.hosts)


TABLE: dict[tuple[str, type], Renderer] = {
    ("text", Detected): _in("verbs.detect:page"),
    ("text", Planned): _in("verbs.plan:page"),
    ("text", Explained): _in("verbs.plan:explanation"),
    ("text", Checked): _in("verbs.check:page"),
    ("text", Ended): _in("verbs.setup:page"),
    **{("json", kind): _fleet_json for kind in (Detected, Planned, Checked, Ended, Fixed)},
    **{("jsonl", kind): _fleet_lines for kind in (Detected, Planned, Checked, Ended, Fixed)},
    ("text", Locked): _in("verbs.lock:page"),
    ("json", Locked): _in("verbs.lock:json_whole"),
    ("text", Fixed): _in("verbs.check_fix:page"),
    ("junit", Checked): _in("verbs.check_formats:junit"),
    ("prometheus", Checked): _in("verbs.check_formats:prometheus"),
    ("nvsentinel", Checked): _in("verbs.check_formats:nvsentinel"),
    **{(form, RunList): _in(f"verbs.runs:listed_{form}") for form in ("text", "json", "jsonl")},
    **{(form, RunShown): _in(f"verbs.runs:shown_{form}") for form in ("text", "json", "jsonl", "ansible")},
    ("text", SelfChecked): _in("verbs.self_check:page"),
    ("json", SelfChecked): _in("verbs.self_check:json_whole"),
    ("jsonl", SelfChecked): _in("verbs.self_check:json_line"),
    ("html", Checked): _in("verbs.check_formats:html"),
    ("text", Runtimes): _in("verbs.runtime_show:page"),
    ("json", Runtimes): _in("verbs.runtime_show:json_whole"),
    ("jsonl", Runtimes): _in("verbs.runtime_show:json_lines"),
    ("text", Labelled): _in("verbs.k8s_labels:page"),
    ("json", Labelled): _in("verbs.k8s_labels:json_whole"),
    ("jsonl", Labelled): _in("verbs.k8s_labels:json_lines"),
    ("text", LabelsSet): _in("verbs.k8s_labels_page:page"),
    ("json", LabelsSet): _in("verbs.k8s_labels_page:json_whole"),
    ("jsonl", LabelsSet): _in("verbs.k8s_labels_page:json_lines"),
    ("text", Verified): _in("verbs.k8s_verify:page"),
    ("json", Verified): _in("verbs.k8s_verify:json_whole"),
    ("jsonl", Verified): _in("verbs.k8s_verify:json_lines"),
    ("text", Preflighted): _in("verbs.k8s_preflight:page"),
    ("json", Preflighted): _in("verbs.k8s_preflight:json_whole"),
    ("jsonl", Preflighted): _in("verbs.k8s_preflight:json_lines"),
    ("text", Configured): _in("verbs.runtime_configure:page"),
    ("json", Configured): _in("verbs.runtime_configure:json_whole"),
    ("jsonl", Configured): _in("verbs.runtime_configure:json_line"),
    ("text", Verdict): _in("verbs.check_verdict:page"),
    ("text", UnitFile): _in("verbs.check_unit:page"),
    ("text", CheckList): _in("verbs.check_docs:listed"),
    ("text", CheckPage): _in("verbs.check_docs:explained"),
    **{("json", kind): _in("verbs.check_docs:json_whole") for kind in (CheckList, CheckPage)},
    **{("jsonl", kind): _in("verbs.check_docs:json_lines") for kind in (CheckList, CheckPage)},
    ("text", CatalogTable): _in("verbs.catalog:page"),
    ("json", CatalogTable): _in("verbs.catalog:json_whole"),
    ("jsonl", CatalogTable): _in("verbs.catalog:json_lines"),
    ("text", SupportPage): _in("verbs.catalog:support"),
    ("text", ChecksPage): _in("verbs.check_docs:page"),
    ("text", SchemaPage): _in("verbs.catalog:schema_page"),
    ("json", SchemaPage): _in("verbs.catalog:schema_whole"),
    ("jsonl", SchemaPage): _in("verbs.catalog:schema_line"),
}


def formats_of(*kinds: type) -> tuple[str, ...]:
    """The formats that all of these results have."""
    names = dict.fromkeys(name for name, _ in TABLE)
    return tuple(name for name in names if all((name, kind) in TABLE for kind in kinds))


def choose(output: ResultOptions, *kinds: type) -> str:
    """The format of a verb that ends with one of `kinds`. Raises UsageError where one of them has no such format, or
    --output could not be written afterwards: nothing was done yet.
    """
    return chosen_format(output, formats_of(*kinds), plans=Ended in kinds)


def show_result(result: object, output: ResultOptions) -> None:
    """To stdout or --output, by the table."""
    form = chosen_format(output, formats_of(type(result)), plans=True)
    if isinstance(result, Fleet) and form not in ("json", "jsonl"):
        result = _without_left_out(result)
    if text := TABLE[form, type(result)](result, result_style(output)):
        deliver(text, output)


def _without_left_out(result: Fleet) -> Fleet:
    """Only JSON has a row for a host that --where left out: for the others it is none of the run's."""
    hosts = tuple(host for host in result.report.hosts if not host.left_out)
    return replace(result, report=replace(result.report, hosts=hosts))


def show_no_host(result: Fleet, output: QuietOptions) -> None:
    """A result without hosts in JSON, which is one document whatever there was to do; people were told."""
    if chosen_format(output, formats_of(type(result)), plans=True) == "json":
        show_result(result, output)


def finish_declined(result: Fleet | LabelsSet, output: QuietOptions) -> int:
    """After a no to the question. People saw all of it before they were asked; a program has read nothing yet."""
    from gpunode.cli.errors import say
    from gpunode.errors import ExitCode

    say("gpunode: nothing was changed")
    if chosen_format(output, formats_of(type(result)), plans=True) != "text":
        show_result(result, output)
    return int(ExitCode.FAILED)


def finish(result: Fleet, output: QuietOptions, *, errors_shown: bool = False, printed: bool = False) -> int:
    """Show the result; what went wrong with a host goes to stderr. Answers the worst code.

    `errors_shown`: the text has the problems itself, and stderr need not repeat them. `printed`: each_line showed it.
    """
    if not printed:
        show_result(result, output)
    text = chosen_format(output, formats_of(type(result)), plans=True) == "text"
    # The text of one host alone has its problem nowhere, except that of Fixed.
    alone = len(_without_left_out(result).report.hosts) == 1 != len(result.report.hosts)
    if alone and not isinstance(result, Fixed):
        errors_shown = False
    if not (errors_shown and text and not output.output):
        say_problems(result.report, ssh=result.ssh)
    return int(worst(h.code for h in result.report.hosts))


def each_line(verb: str, output: ResultOptions) -> Callable[[HostOutcome], None] | None:
    """What prints a host as a JSON line as soon as it has ended; None where the result is shown as a whole.

    A terminal has the progress meanwhile, and a file is written at once.
    """
    line = line_of_each(verb, output)
    return None if line is None else lambda outcome: deliver(line(outcome), output)


def line_of_each(verb: str, output: ResultOptions) -> Callable[[HostOutcome], str] | None:
    """That line; None likewise."""
    if output.format != "jsonl" or output.output or is_terminal():
        return None
    from gpunode.render.machine import host_line, line_rows

    rows = line_rows()
    return lambda outcome: host_line(verb, outcome, rows)


def over_ssh(hosts: Sequence[Host]) -> bool:
    """Whether what is typed for these hosts is typed here, with --ssh."""
    return not any(host.local or host.recorded for host in hosts)


def say_problems(report: FleetReport, *, ssh: bool) -> None:
    """Each host that gave no report: why, once for each."""
    from gpunode.cli.errors import say_error
    from gpunode.render.wording import with_name

    for host in report.hosts:
        if host.problem:
            error = GpunodeError(with_name(host.target, host.problem), evidence=host.evidence, remedy=host.remedy)
            say_error(error, (host.target,) if ssh else ())
