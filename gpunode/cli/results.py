"""Hosts' outcomes -> the result on stdout and the exit code; what every verb ends with."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from gpunode.cli.hosts import on_each
from gpunode.cli.options import LiveOptions, OutputOptions, QuietOptions
from gpunode.cli.output import chosen_format, deliver, progress_style
from gpunode.errors import GpunodeError, worst
from gpunode.fleet.host import Host
from gpunode.model.report import FleetReport, HostOutcome
from gpunode.render.live import Progress


def look_at(
    hosts: tuple[Host, ...], options: LiveOptions, output: QuietOptions, work: Callable[[Host], HostOutcome]
) -> FleetReport:
    """`work` on every host, with progress on stderr when there is more than one."""
    stop = threading.Event()
    with Progress(progress_style(output), sys.stderr, [str(h) for h in hosts], done="looked at") as progress:
        report = on_each(hosts, options, work, progress.done, stop)
    if stop.is_set():
        raise KeyboardInterrupt  # only looking was stopped: there is nothing to tell of half the hosts
    return report


def finish(
    verb: str, report: FleetReport, output: OutputOptions, text: Callable[[FleetReport], str], *, told: bool = False
) -> int:
    """Show the report in the chosen format; what went wrong with a host goes to stderr. Answers the worst code.

    `told`: the text says what went wrong itself, and stderr need not say it again.
    """
    from gpunode.render.machine import host_line, hosts_json

    match chosen_format(output, plans=True):
        case "json":
            deliver(hosts_json(verb, report.hosts, seconds_s=report.seconds), output)
        case "jsonl":
            deliver("".join(host_line(verb, h) for h in report.hosts), output)
        case _:
            if shown := text(report):
                deliver(shown, output)
    if not (told and chosen_format(output, plans=True) == "text" and not output.output):
        say_problems(report)
    return int(worst(h.code for h in report.hosts))


def say_problems(report: FleetReport) -> None:
    """Each host that gave no report: why, once for each."""
    from gpunode.cli.errors import say_error

    for host in report.hosts:
        if host.problem:
            named = host.problem if host.problem.startswith(f"{host.target}:") else f"{host.target}: {host.problem}"
            say_error(GpunodeError(named, evidence=host.evidence, remedy=host.remedy))
