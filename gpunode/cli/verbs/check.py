"""gpunode check: is this node well?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpunode.cli.options import CheckOptions, HostOptions, OutputOptions, typed, verb

if TYPE_CHECKING:
    from gpunode.cli.results import Checked
    from gpunode.errors import ExitCode
    from gpunode.fleet.host import Host
    from gpunode.model.report import CheckReport, HostOutcome
    from gpunode.model.spec import Spec
    from gpunode.render.style import Style


def register(app: typer.Typer) -> None:
    verb(
        app,
        "check",
        help="Validate a node: every finding with its evidence and remedy. Changes nothing.",
        examples=("gpunode check --ssh gpu[01-12]", "gpunode check --explain drv.dkms-next"),
    )(check)


def check(
    hosts: HostOptions,
    wanted: CheckOptions,
    output: OutputOptions,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings alone end with exit code 9.", show_default=False)
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List all checks.", show_default=False)] = False,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="ID", help="Explain one check.", show_default=False)
    ] = None,
) -> int:
    from gpunode.cli.results import Checked, CheckList, CheckPage, choose

    choose(output, CheckPage if explain is not None else CheckList if list_all else Checked)
    if list_all or explain is not None:
        from gpunode.cli.verbs.check_docs import show_docs

        _refuse_with_docs(hosts, wanted, output, strict=strict, both=list_all and explain is not None)
        return show_docs(explain, output)
    return _check_hosts(hosts, wanted, output, strict)


def _check_hosts(hosts: HostOptions, wanted: CheckOptions, output: OutputOptions, strict: bool) -> int:
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.results import Checked, finish, look_at, over_ssh
    from gpunode.cli.spec_options import wanted_spec

    spec = wanted_spec(wanted)
    with open_hosts(hosts) as named:
        report = look_at(named, hosts, output, lambda host: checked(host, spec, strict))
        return finish(Checked("check", report, over_ssh(named)), output, errors_shown=len(named) > 1)


def _refuse_with_docs(
    hosts: HostOptions, wanted: CheckOptions, output: OutputOptions, *, strict: bool, both: bool
) -> None:
    """--list and --explain ask no host. Raises UsageError for what was typed with them as if they did."""
    from gpunode.errors import UsageError

    if both:
        raise UsageError("--list and --explain exclude each other", remedy="choose one")
    if other := typed(hosts) + typed(wanted) + (["--strict"] if strict else []):
        raise UsageError(f"{other[0]} is for a check of hosts, not for --list or --explain", remedy="leave it out")
    if output.quiet or output.verbose:
        raise UsageError("-q and -v are for a check of hosts, not for --list or --explain", remedy="leave them out")


def checked(host: Host, spec: Spec, strict: bool) -> HostOutcome:
    """One host's checks."""
    from gpunode.catalog.load import load_catalog
    from gpunode.checks import run_all
    from gpunode.facts.collect import collect
    from gpunode.model.report import HostOutcome

    report = run_all(collect(host.transport), spec, load_catalog())
    return HostOutcome(str(host), check_code(report, strict), check=report)


def check_code(report: CheckReport, strict: bool) -> ExitCode:
    """0 all pass, 1 a failure, 9 warnings only with --strict."""
    from gpunode.errors import ExitCode

    if report.failures:
        return ExitCode.FAILED
    return ExitCode.WARNINGS if strict and report.warnings else ExitCode.DONE


def page(result: Checked, style: Style) -> str:
    from gpunode.render.check_text import check_text, fleet_check_text

    report = result.report
    only = report.hosts[0] if len(report.hosts) == 1 else None
    if only is not None:
        return check_text(only.check, style, seconds_s=report.seconds, ssh=result.ssh) if only.check else ""
    return fleet_check_text(report.hosts, style, seconds_s=report.seconds, ssh=result.ssh)
