"""check --bundle FILE: the check, and what support asks for about it, in one archive with the secrets masked."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpunode import __version__
from gpunode.cli.errors import say
from gpunode.cli.hosts import look_at, open_hosts
from gpunode.cli.options.groups import CheckedHostOptions, CheckOptions, OutputOptions, RuleOptions
from gpunode.cli.options.rules import held_against, judgement, refuse_idle
from gpunode.cli.options.spec import retyped, wanted_file, wanted_of_each
from gpunode.cli.results import Checked, choose, finish, over_ssh
from gpunode.cli.verbs.check_host import judged, site_checks
from gpunode.errors import GpunodeError
from gpunode.facts.collect import assemble, logs, probe
from gpunode.facts.logs import Log, parse_logs, units_of
from gpunode.facts.recordings import masked, section_text
from gpunode.offline.bundle import Entry, HostFiles, bundle
from gpunode.offline.output_file import check, write_archive
from gpunode.render.check_text import check_text
from gpunode.render.machine import hosts_json
from gpunode.render.style import PLAIN
from gpunode.render.wording import count

if TYPE_CHECKING:
    from gpunode.fleet.host import Host
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import HostOutcome

FLAG = "--bundle"
NO_HOST = "a recording has no logs: make the bundle on the host, or over SSH"
JOURNAL = "/var/lib/gpunode/journal.jsonl, its newest lines: what gpunode changed"


def save_bundle(
    path: Path,
    hosts: CheckedHostOptions,
    wanted: CheckOptions,
    which: RuleOptions,
    output: OutputOptions,
    *,
    strict: bool,
) -> int:
    choose(output, Checked)
    check(path, FLAG)
    file, again = held_against(which, wanted, wanted_file(wanted)), retyped(wanted)
    site = site_checks(file.spec)
    rules = judgement(which, file.rules, [one.id for one in site])
    found: dict[Host, HostFiles] = {}
    guard = threading.Lock()

    def look(host: Host) -> HostOutcome:
        stream = probe(host.transport)
        facts = assemble(stream, str(host))
        outcome = judged(host, facts, wanted_of(host).spec, strict, again, site, rules)
        files = _files(host, stream, facts, outcome)
        with guard:
            found[host] = files
        return outcome

    with open_hosts(hosts) as named:
        wanted_of = wanted_of_each(named, wanted, partial(held_against, which, wanted))
        refuse_idle(rules, (wanted_of(host).spec.expect for host in named), [one.id for one in site])
        report = look_at(named, hosts, output, look)
        at_s = time.time()
        whole = [found.get(host) or _nothing(outcome) for host, outcome in zip(named, report.hosts, strict=True)]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
        write_archive(path, bundle(whole, at=at, at_s=int(at_s), version=__version__), FLAG)
        if not output.quiet:
            files = count(sum(len(one.entries) for one in whole), "file")
            say(f"gpunode: {path} has {files} and a MANIFEST; read them before you send it")
        result = Checked("check", report, over_ssh(named), strict, at_s)
        return finish(result, output, errors_shown=len(report.hosts) > 1)


def _files(host: Host, stream: bytes, facts: HostFacts, outcome: HostOutcome) -> HostFiles:
    recording = masked(stream, mask_host=False).decode("utf-8", "surrogateescape")
    assert outcome.check is not None
    text = check_text(outcome.check, replace(PLAIN, verbose=1))
    entries = [
        Entry("facts.txt", "the probe's answer; gpunode check --recorded reads it", recording, exact=True),
        Entry("report.txt", "the check, as -v shows it", text),
        Entry(
            "report.json", "the same for programs", "".join(hosts_json("check", [outcome], seconds_s=0.0)), exact=True
        ),
    ]
    left = []
    for log in (*_recorded(stream, facts, recorded=host.recorded), *_logs(host, facts)):
        if log.missing:
            left.append((log.name, log.missing))
        else:
            entries.append(Entry(log.name, log.source, log.text))
    return HostFiles(str(host), tuple(entries), tuple(left))


def _recorded(stream: bytes, facts: HostFacts, *, recorded: bool) -> tuple[Log, ...]:
    """What the probe's answer holds already, as files of their own."""
    journal, why = section_text(stream, "journal"), facts.unread.get("journal", "gpunode has changed nothing here")
    found = [Log("journal.jsonl", JOURNAL, journal, "" if journal.strip() else why)]
    if recorded and (kernel := section_text(stream, "kernel_log")).strip():
        found.append(Log("kernel.log", "what the probe took from the kernel's log", kernel))
    return tuple(found)


def _logs(host: Host, facts: HostFacts) -> tuple[Log, ...]:
    """Those of the host; where they cannot be had, the rest of the bundle is made all the same."""
    if host.recorded:
        return tuple(Log(name, "", missing=NO_HOST) for name in ("units", "dkms"))
    try:
        return tuple(parse_logs(logs(host.transport, units_of(facts))))
    except GpunodeError as error:
        return (Log("units", "", missing=f"{error.problem}: {error.evidence}"),)


def _nothing(outcome: HostOutcome) -> HostFiles:
    why = f"--where left it out: {outcome.left_out}" if outcome.left_out else f"{outcome.problem}: {outcome.evidence}"
    return HostFiles(outcome.target, left_out=(("facts.txt", why),))
