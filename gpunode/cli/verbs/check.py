"""gpunode check: is this node well?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpunode.cli.options.groups import (
    ActiveOptions,
    CheckedHostOptions,
    CheckOptions,
    CheckResultOptions,
    OutputOptions,
    RuleOptions,
    option,
    typed,
)
from gpunode.cli.options.verb import verb
from gpunode.cli.start.verdict_words import FLAGS as VERDICT_FLAGS
from gpunode.errors import UsageError
from gpunode.values import dataclass

if TYPE_CHECKING:
    import typer

    from gpunode.checks.rules.judged import Judgement
    from gpunode.cli.results import Checked
    from gpunode.cli.verbs.check_fleet import Kept
    from gpunode.fleet.host import Host
    from gpunode.model.active import ActiveTests
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import FleetReport, HostOutcome
    from gpunode.model.spec import Spec
    from gpunode.render.style import Style

    Observe = Callable[[Host, HostFacts, Spec], HostFacts]


@dataclass(frozen=True)
class Modes:
    """What is asked for in place of one check with one result; one of them at a time."""

    list: Annotated[bool, option("--list", help="List all checks.")] = False
    explain: Annotated[str | None, option("--explain", metavar="ID", help="Explain one check.")] = None
    fix: Annotated[bool, option("--fix", help="Mend what is safe to mend: shows the plan and asks.")] = False
    bundle: Annotated[
        Path | None, option("--bundle", metavar="FILE", help="Save what support asks for as a tar.gz, secrets masked.")
    ] = None
    npd: Annotated[bool, option("--npd", help="One line and the exit codes of Node Problem Detector.")] = False
    nhc: Annotated[bool, option("--nhc", help="One line, the reason to drain, for Slurm and LBNL NHC.")] = False
    snapshot: Annotated[
        Path | None, option("--snapshot", metavar="FILE", help="Write what this node has, for --against.")
    ] = None
    watch: Annotated[str | None, option("--watch", metavar="SECONDS", help="Check again so long after each.")] = None
    unit: Annotated[
        str | None, option("--unit", metavar="service|timer", help="Print the systemd unit that runs this regularly.")
    ] = None

    def chosen(self) -> str:
        """The flag that was typed; "" for none. Raises UsageError for two."""
        flags = typed(self)
        if len(flags) > 1:
            raise UsageError(f"{flags[0]} and {flags[1]} exclude each other", remedy="choose one")
        return flags[0] if flags else ""


def register(app: typer.Typer) -> None:
    verb(
        app,
        "check",
        help="Validate a node: every finding with its evidence and remedy. Changes nothing without --fix.",
        examples=(
            "gpunode check --ssh gpu[01-12]",
            "gpunode check --explain drv.dkms-next",
        ),
    )(check)


def check(
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    active: ActiveOptions,
    which: RuleOptions,
    output: CheckResultOptions,
    modes: Modes,
    strict: Annotated[bool, option("--strict", help="Warnings alone end with exit code 9.")] = False,
    yes: Annotated[bool, option("--yes", "-y", help="--fix does not ask.")] = False,
) -> int:
    from gpunode.cli.verbs.check_active import asked_tests

    mode = modes.chosen()
    tests = asked_tests(active, hosts, mode)
    if mode == "--fix":
        from gpunode.cli.verbs.check_fix import fix

        return fix(hosts, wanted, which, output, strict=strict, yes=yes)
    if yes:
        raise UsageError("--yes is for check --fix: nothing else of a check asks", remedy="leave it out")
    if modes.bundle is not None:
        from gpunode.cli.verbs.check_bundle import save_bundle

        return save_bundle(modes.bundle, hosts, wanted, which, output, strict=strict)
    if mode in ("--list", "--explain"):
        return _docs(hosts, wanted, which, output, modes, strict)
    if mode in VERDICT_FLAGS:
        return _verdict(mode, hosts, wanted, which, output, strict)
    from gpunode.cli.results import Checked, choose

    form = choose(output, Checked)
    if modes.unit is not None:
        from gpunode.cli.verbs.check_unit import show_unit

        return show_unit(modes.unit, hosts, wanted, which, output, strict=strict)
    if modes.watch is not None:
        return _watch(modes.watch, form, hosts, wanted, which, output, strict)
    if modes.snapshot is not None:
        return _snapshot(modes.snapshot, hosts, wanted, which, output, strict)
    if tests:
        return _with_tests(tests, active, hosts, wanted, which, output, strict)
    with _looking(hosts, wanted, which, output, strict) as look:
        return _show(look(), output)


def _with_tests(
    tests: ActiveTests,
    active: ActiveOptions,
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    strict: bool,
) -> int:
    from gpunode.cli.verbs.check_active import announce, say_unanswered, with_active

    def observed(host: Host, facts: HostFacts, spec: Spec) -> HostFacts:
        return with_active(host, facts, spec, tests, in_use=active.allow_gpu_in_use)

    announce(tests)
    with _looking(hosts, wanted, which, output, strict, observed) as look:
        result = look()
    code = _show(result, output)
    say_unanswered(result.report, tests)
    return code


def _docs(
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    modes: Modes,
    strict: bool,
) -> int:
    from gpunode.cli.results import CheckList, CheckPage, choose

    choose(output, CheckPage if modes.explain is not None else CheckList)
    from gpunode.cli.verbs.check_docs import show_docs

    _refuse_with_docs((hosts, wanted, which), output, strict=strict)
    return show_docs(modes.explain, output, wanted.site_checks)


def _verdict(
    mode: str,
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    strict: bool,
) -> int:
    from gpunode.cli.results import Verdict, choose
    from gpunode.cli.verbs.check_verdict import show_verdict

    if hosts.ssh or hosts.inventory or output.verbose:
        flag = "--ssh" if hosts.ssh else "--inventory" if hosts.inventory else "-v"
        why = "has one line" if flag == "-v" else "is of the node that it runs on"
        raise UsageError(f"{mode} {why}", remedy=f"leave {flag} out")
    choose(output, Verdict)

    def look() -> FleetReport:
        with _looking(hosts, wanted, which, output, strict, single=mode) as checking:
            return checking().report

    return show_verdict(mode, look, output, strict=strict)


def _snapshot(
    path: Path,
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    strict: bool,
) -> int:
    from gpunode.cli.verbs.check_snapshot import FLAG, refuse_with_snapshot, write_snapshot
    from gpunode.offline.output_file import check as check_writable

    refuse_with_snapshot(hosts, which)
    check_writable(path, FLAG)
    with _looking(hosts, wanted, which, output, strict, single=FLAG) as look:
        result = look()
        write_snapshot(path, result.report, output)
        return _show(result, output)


def _watch(
    seconds: str,
    form: str,
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    strict: bool,
) -> int:
    from gpunode.cli.hosts import whole_number
    from gpunode.cli.verbs.check_watch import refuse_documents, watch

    every_s = whole_number("--watch", seconds, 1, 86400) or 1
    refuse_documents(form, output)
    if hosts.recorded:
        raise UsageError("--watch is for hosts, and a recording does not change", remedy="leave it out")
    with _looking(hosts, wanted, which, output, strict, often=True) as look:
        only_changes = form == "text" and not output.output
        return watch(every_s, look, lambda result: _show(result, output), only_changes=only_changes)


@contextmanager
def _looking(
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    strict: bool,
    more: Observe | None = None,
    single: str = "",
    often: bool = False,
) -> Iterator[Callable[[], Checked]]:
    """What checks all hosts, as often as it is called; `often`: over the same connections, which are kept for that.

    `more`: it needs root. `single`: the flag that takes one host.
    """
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.options.rules import held_against, judgement, refuse_idle
    from gpunode.cli.options.spec import retyped, wanted_file, wanted_of_each
    from gpunode.cli.results import Checked, each_line, over_ssh
    from gpunode.cli.verbs.check_host import checked, site_checks

    file, again = held_against(which, wanted, wanted_file(wanted)), retyped(wanted)
    site = site_checks(file.spec)
    rules = judgement(which, file.rules, [one.id for one in site])
    each = None if single else each_line("check", output)
    with open_hosts(hosts, as_root=more is not None) as named:
        if single and len(named) != 1:
            raise UsageError(f"{single} takes one host", remedy="name one host")

        wanted_of = wanted_of_each(named, wanted, partial(held_against, which, wanted))
        refuse_idle(rules, (wanted_of(host).spec.expect for host in named), [one.id for one in site])

        def look_one(host: Host) -> HostOutcome:
            return checked(host, wanted_of(host).spec, strict, again, site, rules, more)

        def of_fleet(kept: Kept, host: Host) -> HostOutcome:
            try:
                return kept.outcome(look_one(host))
            finally:
                if not often:  # a thread, a socket and its buffers: as many as hosts in flight, not as hosts
                    host.transport.reconnect()

        def look() -> Checked:
            if len(named) == 1:
                report = look_at(named, hosts, output, look_one, each)
                return Checked("check", report, over_ssh(named), strict, time.time())
            kept = _kept(output)
            report = look_at(named, hosts, output, partial(of_fleet, kept), each)
            if each is None:  # a line that is printed already says nothing of later hosts
                report = _compared(report, kept, rules, strict, again)
            return Checked("check", report, over_ssh(named), strict, time.time(), kept.sights)

        yield look


def _kept(output: OutputOptions) -> Kept:
    from gpunode.cli.verbs.check_fleet import Kept

    return Kept(page=output.format == "html")


def _compared(report: FleetReport, kept: Kept, rules: Judgement, strict: bool, again: tuple[str, ...]) -> FleetReport:
    from datetime import date

    from gpunode.catalog.load import load_catalog
    from gpunode.cli.verbs.check_fleet import with_peers

    return with_peers(report, kept, rules, load_catalog(), date.today(), strict=strict, again=again)


def _show(result: Checked, output: OutputOptions) -> int:
    from gpunode.cli.results import each_line, finish

    printed = each_line("check", output) is not None
    return finish(result, output, errors_shown=len(result.report.hosts) > 1, printed=printed)


def _refuse_with_docs(groups: Sequence[object], output: OutputOptions, *, strict: bool) -> None:
    """--list and --explain ask no host. Raises UsageError for what was typed with them as if they did."""
    of_hosts = [flag for group in groups for flag in typed(group) if flag != "--site-checks"]
    if other := of_hosts + ["--strict"] * strict:
        raise UsageError(f"{other[0]} is for a check of hosts, not for --list or --explain", remedy="leave it out")
    if output.quiet or output.verbose:
        raise UsageError("-q and -v are for a check of hosts, not for --list or --explain", remedy="leave them out")


def page(result: Checked, style: Style) -> str:
    from gpunode.render.check_text import check_text, fleet_check_text

    report = result.report
    only = report.hosts[0] if len(report.hosts) == 1 else None
    if only is not None:
        return check_text(only.check, style, seconds_s=report.seconds, ssh=result.ssh) if only.check else ""
    return fleet_check_text(report.hosts, style, seconds_s=report.seconds, ssh=result.ssh)
