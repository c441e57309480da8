"""Checks as metrics, in the text format that node_exporter's textfile collector reads.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/. For one sample twice, or a HELP in the wrong
place, the collector drops the whole file. Names, labels and values are stable: alerts are written on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gpunode import __version__
from gpunode.errors import SEVERITY
from gpunode.model.report import HostOutcome
from gpunode.render.check_values import host_name, standing

# No verdict is a value, not a missing sample: an alert that ends because nothing is known any more would be a lie.
STATUS = {"pass": 0, "warning": 1, "error": 2, "not-applicable": -1, "acknowledged": -2}
Sample = tuple[dict[str, str], float]


class Metric(NamedTuple):
    name: str
    help: str
    samples: Iterable[Sample]


def prometheus_text(outcomes: Sequence[HostOutcome], *, seconds_s: float, at_s: float) -> Iterator[str]:
    """Sample by sample. `at_s`: when the checks ended, in seconds since the epoch."""
    for metric in _metrics(_once(outcomes), seconds_s, at_s):
        yield from _family(metric)


def _once(outcomes: Sequence[HostOutcome]) -> dict[str, HostOutcome]:
    """By the name that becomes the label; the worst of two hosts that show alike, since one sample twice is none."""
    named: dict[str, HostOutcome] = {}
    for outcome in outcomes:
        other = named.get(name := host_name(outcome))
        if other is None or _rank(outcome) < _rank(other):
            named[name] = outcome
    return named


def _rank(outcome: HostOutcome) -> tuple[bool, int]:
    """The worst first: of a host that gave no report nothing is known to be well."""
    return outcome.check is not None, SEVERITY.index(outcome.code)


def _metrics(hosts: dict[str, HostOutcome], seconds_s: float, at_s: float) -> Iterator[Metric]:
    yield Metric("gpunode_info", "The gpunode that wrote this.", [({"version": __version__}, 1)])
    yield Metric("gpunode_last_check_timestamp_seconds", "When the checks ended, in Unix time.", [({}, round(at_s, 3))])
    yield Metric("gpunode_last_check_duration_seconds", "How long all hosts took.", [({}, round(seconds_s, 3))])
    reached = [({"host": name}, float(host.check is not None)) for name, host in hosts.items()]
    yield Metric("gpunode_host_checked", "1 if the host gave a report, 0 if it was not reached or not read.", reached)
    codes = [({"host": name}, float(host.code)) for name, host in hosts.items()]
    yield Metric("gpunode_check_exit_code", "The exit code that a check of this host alone ends with.", codes)
    kinds = [
        ({"host": n, "profile": h.check.profile.name}, 1.0) for n, h in hosts.items() if h.check and h.check.profile
    ]
    yield Metric("gpunode_host_profile", "What kind of node the checks took the host for.", kinds)
    yield Metric("gpunode_checks", "Checks of a host by how they ended.", _counts(hosts))
    status = "One check: 0 pass, 1 warning, 2 error, -1 no verdict (not applicable, or not known), -2 acknowledged."
    yield Metric("gpunode_check_status", status, _status(hosts))


def _counts(hosts: dict[str, HostOutcome]) -> Iterator[Sample]:
    for name, host in hosts.items():
        if host.check is not None:
            found = Counter(map(standing, host.check.results.values()))
            yield from (({"host": name, "outcome": how}, float(found[how])) for how in STATUS)


def _profiles(hosts: dict[str, HostOutcome]) -> Iterator[Sample]:
    for name, host in hosts.items():
        if host.check is not None and host.check.profile is not None:
            yield {"host": name, "profile": host.check.profile.name}, 1.0


def _status(hosts: dict[str, HostOutcome]) -> Iterator[Sample]:
    for name, host in hosts.items():
        if host.check is None and host.check_id:  # why there is no report
            yield {"id": host.check_id, "host": name}, STATUS["error"]
        for result in host.check.results.values() if host.check else ():
            yield {"id": result.id, "host": name}, STATUS[standing(result)]


def _family(metric: Metric) -> Iterator[str]:
    """HELP and TYPE once, then the samples; nothing for a metric without any."""
    head = f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n"
    for labels, value in metric.samples:
        yield f"{head}{metric.name}{_labels(labels)} {value:.15g}\n"
        head = ""


def _labels(labels: dict[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(text: str) -> str:
    """A label's value; its line ends are shown already (`clean_line`)."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
