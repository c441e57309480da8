"""What is kept on this machine of a run that may change hosts: begun before the first of them, ended after the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from gpunode.cli.errors import say
from gpunode.cli.options.connection import typed_connection
from gpunode.cli.options.groups import LiveOptions
from gpunode.cli.results import over_ssh
from gpunode.errors import UsageError
from gpunode.fleet.apply_one import user_name
from gpunode.fleet.host import Host
from gpunode.fleet.runs.header import kept_rules, kept_spec
from gpunode.fleet.runs.merge import with_earlier
from gpunode.fleet.runs.proof import proof_of
from gpunode.fleet.runs.record import About, Record, begin, go_on
from gpunode.model.report import FleetReport
from gpunode.model.rules import Rules
from gpunode.model.run_record import Key, PastRun
from gpunode.model.spec import Spec
from gpunode.values import dataclass


@dataclass(frozen=True)
class Order:
    """What a run is about, for who goes on with it or tries again."""

    verb: str  # "setup" | "undo" | "fix"
    spec: Spec | None = None  # every host's
    own: str = ""  # where each has one of its own: what was typed over it
    rollout: tuple[tuple[str, object], ...] = ()  # its options that were typed
    rules: Rules = field(default_factory=Rules)  # of all hosts
    past: PastRun | None = None  # the run that goes on, in place of a new one
    closed: tuple[tuple[str, str], ...] = ()  # as About.closed
    owing: Mapping[str, frozenset[Key]] = field(default_factory=dict)  # as About.owing


SETUP = Order("setup")


def record_of(order: Order, named: tuple[Host, ...], planned: FleetReport, hosts: LiveOptions) -> Record:
    """The record that this run writes. Raises UsageError where there can be none: then nothing was touched."""
    if order.past is not None:
        return go_on(order.past, say, order.rollout)
    ssh = over_ssh(named)
    connection = tuple(typed_connection(hosts).items()) if ssh else ()
    # A retry must not want of a host what was another's.
    spec = (None, proof_of(order.own)) if order.own else kept_spec(order.spec)
    its_hosts = tuple(host.target for host in planned.hosts if not host.left_out)
    rules = kept_rules(order.rules)
    here = set(its_hosts)
    closed = tuple((host, command) for host, command in order.closed if host in here)
    owing = {host: failing for host, failing in order.owing.items() if host in here}
    about = About(order.verb, its_hosts, user_name(), ssh, connection, *spec, order.rollout, rules, closed, owing)
    return begin(about, say)


def whole(report: FleetReport, record: Record, order: Order) -> FleetReport:
    """The run's end, with what was done before it went on. A host that has no plan then stays as it was."""
    report = with_earlier(order.past, report) if order.past else report
    record.end([host for host in report.hosts if not host.left_out])
    return replace(report, run=record.id)


def keep_unplanned(order: Order, named: tuple[Host, ...], report: FleetReport, hosts: LiveOptions) -> FleetReport:
    """A run in which no host has a plan changes none, and is the last one all the same: it is what is tried again.

    Where it cannot be kept, why no host has a plan is what counts. In one that goes on they stay as they were: what
    cannot be reached now has not ended.
    """
    try:
        with record_of(order, named, report, hosts) as record:
            for outcome in report.hosts if order.past is None else ():
                record.host_ends(outcome)
            return whole(report, record, order)
    except UsageError as error:
        say(f"gpunode: no record is kept: {error.problem}: {error.evidence}")
        return report
