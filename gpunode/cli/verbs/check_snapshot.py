"""check --snapshot FILE: what one node has, as an expectation for others (check --against FILE)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from gpunode.catalog.load import load_catalog
from gpunode.checks.expect.snapshot import snapshot
from gpunode.cli.errors import say
from gpunode.cli.options.groups import CheckedHostOptions, QuietOptions, RuleOptions
from gpunode.cli.output import to_file
from gpunode.errors import UsageError
from gpunode.model.report import FleetReport
from gpunode.render.check_values import line
from gpunode.render.wording import count
from gpunode.specfile import expectation_text

FLAG = "--snapshot"
HEAD = "# What a node has, to compare others with: gpunode check --against FILE. Nothing here names the node.\n"


def refuse_with_snapshot(hosts: CheckedHostOptions, which: RuleOptions) -> None:
    """Raises UsageError for what would make a snapshot of something that no node has."""
    for flag, given in (("--against", which.against), ("--inject", hosts.inject)):
        if given:
            raise UsageError(f"{FLAG} and {flag} exclude each other", remedy="choose one")


def write_snapshot(path: Path, report: FleetReport, output: QuietOptions) -> None:
    """Of the one host, if it gave a report. What is not in it is told, and so is what is wrong with the node."""
    (host,) = report.hosts
    if host.check is None or host.check.facts is None:
        return
    found, unknown = snapshot(host.check.facts, load_catalog())
    text, odd = expectation_text(found, date.today().isoformat())
    to_file(path, HEAD + text, FLAG)
    if output.quiet:
        return
    say(f"gpunode: {count(len(found) - len(odd), 'expectation')} written to {line(str(path))}")
    for key, why in (*unknown.items(), *((key, "its value is of an odd form") for key in odd)):
        say(f"  not in it: {key}: {line(why)}")
    if host.check.failures:
        say(f"  this node fails {count(len(host.check.failures), 'check')}: look whether others are to be like it")
