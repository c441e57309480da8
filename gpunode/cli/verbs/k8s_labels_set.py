"""gpunode k8s labels --kubeconfig: a node's labels set through the API, shown first and asked for as by setup."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.cli.options.groups import HostOptions, QuietOptions
    from gpunode.cluster.node import NodeObject
    from gpunode.cluster.server import Server
    from gpunode.fleet.host import Host
    from gpunode.kubernetes.label_changes import LabelChanges
    from gpunode.kubernetes.labels import NodeLabels
    from gpunode.kubernetes.mig_labels import MigStrategy
    from gpunode.model.report import FleetReport, HostOutcome
    from gpunode.model.versions import Release
    from gpunode.render.style import Style


class Difference(NamedTuple):
    """Of one host's node."""

    node: NodeObject
    found: NodeLabels
    changes: LabelChanges


@dataclass(frozen=True)
class Wanted:
    kubeconfig: Path
    context: str | None
    node: str | None
    strategy: MigStrategy
    kubernetes: Release | None  # None: the kubelet's
    yes: bool


def set_labels(want: Wanted, hosts: HostOptions, output: QuietOptions) -> int:
    from gpunode.cli.hosts import look_at, open_hosts
    from gpunode.cli.results import LabelsSet, choose, finish_declined, over_ssh, say_problems, show_result
    from gpunode.cli.run.apply_plans import refuse_unasked
    from gpunode.cli.verbs.k8s_cluster import open_cluster
    from gpunode.errors import UsageError, worst
    from gpunode.fleet.run import declined

    choose(output, LabelsSet)
    refuse_unasked(want.yes, "k8s labels --kubeconfig", "or look first with ", "k8s labels")
    differences: dict[str, Difference] = {}
    with open_cluster(want.kubeconfig, want.context) as server, open_hosts(hosts) as named:
        if want.node is not None and len(named) > 1:
            raise UsageError("--node takes one host", remedy="name one host with --ssh")
        report = look_at(named, hosts, output, lambda host: _compared(host, server, want, differences))
        _refuse_twice(differences)
        changed = {target: one for target, one in differences.items() if one.changes.changes}
        if changed:
            _show(differences, output)
        if changed and not want.yes:
            say_problems(report, ssh=over_ssh(named))
            if not _agreed(changed):
                return finish_declined(LabelsSet(declined(report, changed), differences), output)
        report = _changed(named, report, hosts, server, changed, want)
        show_result(LabelsSet(report, differences), output)
        if want.yes or not changed:
            say_problems(report, ssh=over_ssh(named))
        else:
            say_problems(_newly(report, changed), ssh=over_ssh(named))
    return int(worst(h.code for h in report.hosts))


def _newly(report: FleetReport, changed: Mapping[str, Difference]) -> FleetReport:
    """Without what was said before the question."""
    from dataclasses import replace

    return replace(report, hosts=tuple(h for h in report.hosts if h.target in changed))


def _compared(host: Host, server: Server, want: Wanted, differences: dict[str, Difference]) -> HostOutcome:
    from gpunode.catalog.load import load_catalog
    from gpunode.cli.verbs.detect import observed
    from gpunode.cli.verbs.k8s_cluster import node_of
    from gpunode.errors import UnsupportedHost
    from gpunode.kubernetes.labels import node_labels
    from gpunode.model.versions import release

    outcome = observed(host)
    facts = outcome.facts
    assert facts is not None
    if "pci" in facts.unread:
        raise UnsupportedHost("whether there are GPUs is not known: no label is changed", evidence=facts.unread["pci"])
    node = node_of(server, facts, want.node)
    kubelet = want.kubernetes or release(node.kubelet)
    found = node_labels(facts, load_catalog(), mig_strategy=want.strategy, kubernetes=kubelet)
    differences[str(host)] = Difference(node, found, _changes(server, node, found, kubelet))
    return outcome


def _changes(server: Server, node: NodeObject, found: NodeLabels, kubelet: Release | None) -> LabelChanges:
    """A server is never older than its kubelets."""
    from gpunode.kubernetes.label_changes import label_changes, refused_to_nodes

    refused = refused_to_nodes({*found.values, *node.ours}, kubelet) if server.node else {}
    return label_changes(node.labels, node.ours, found, refused)


def _refuse_twice(differences: Mapping[str, Difference]) -> None:
    """Raises UsageError for two hosts that would label one node by turns."""
    from gpunode.errors import UsageError

    by_node: dict[str, str] = {}
    for target, one in differences.items():
        if (other := by_node.setdefault(one.node.name, target)) != target:
            raise UsageError(f"{other} and {target} are both node {one.node.name}", remedy="leave one of them out")


def _changed(
    named: tuple[Host, ...],
    looked: FleetReport,
    hosts: HostOptions,
    server: Server,
    changed: Mapping[str, Difference],
    want: Wanted,
) -> FleetReport:
    from gpunode.cli.hosts import on_each
    from gpunode.cluster.node import change_labels
    from gpunode.model.versions import release

    before = dict(zip(named, looked.hosts, strict=True))

    def work(host: Host) -> HostOutcome:
        one = changed.get(str(host))
        if one is not None:

            def again(node: NodeObject) -> LabelChanges:
                return _changes(server, node, one.found, want.kubernetes or release(node.kubelet))

            change_labels(server, one.node, one.changes, again)
        return before[host]

    return on_each(named, hosts, work, lambda outcome: None)


def _show(differences: Mapping[str, Difference], output: QuietOptions) -> None:
    from gpunode.cli.output import show_beforehand
    from gpunode.cli.verbs.k8s_labels_page import difference_text

    def text(style: Style) -> str:
        return "\n\n".join(difference_text(target, one, style) for target, one in differences.items())

    show_beforehand(text, output)


def _agreed(changed: Mapping[str, Difference]) -> bool:
    from gpunode.cli.run.apply_plans import confirmed
    from gpunode.render.wording import count

    labels = sum(len(one.changes.changes) for one in changed.values())
    where = f" of {count(len(changed), 'node')}" if len(changed) > 1 else ""
    return confirmed(f"Change {count(labels, 'label')}{where}")
