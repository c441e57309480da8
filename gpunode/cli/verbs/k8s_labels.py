"""gpunode k8s labels: a node's labels from its facts, in the form in which they reach the node, or set on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gpunode.cli.options.groups import HostOptions, QuietOptions, wanted
from gpunode.cli.options.verb import verb
from gpunode.cli.verbs.k8s_cluster import ContextFlag

if TYPE_CHECKING:
    import typer

    from gpunode.cli.results import Labelled
    from gpunode.kubernetes.labels import NodeLabels
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import HostOutcome
    from gpunode.model.versions import Release
    from gpunode.render.style import Style

SCHEMA = "gpunode.k8s-labels/1"


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "labels",
        help="Print a node's labels, as GPU feature discovery names them, from the host's facts; --kubeconfig sets "
        "them.",
        examples=(
            "gpunode k8s labels --ssh gpu07 --kubeconfig ~/.kube/config",
            "gpunode k8s labels --form nfd --output /etc/kubernetes/node-feature-discovery/features.d/gpunode",
        ),
    )(labels)


def labels(
    hosts: HostOptions,
    output: QuietOptions,
    form: Annotated[
        str | None,
        wanted(
            "--form", metavar="nfd|node-labels|patch|kubectl", help="Of one host's labels, to be given to the node."
        ),
    ] = None,
    kubernetes: Annotated[
        str | None, wanted("--kubernetes", metavar="VERSION", help="The kubelet's (default: the one that is there).")
    ] = None,
    mig_strategy: Annotated[
        str | None, wanted("--mig-strategy", metavar="none|single|mixed", help="Of the device plugin (default none).")
    ] = None,
    node: Annotated[str | None, wanted("--node", metavar="NAME", help="The node's name (default: the host's).")] = None,
    kubeconfig: Annotated[
        Path | None,
        wanted("--kubeconfig", metavar="FILE", help="Set them through this cluster's API: shows, asks, changes."),
    ] = None,
    context: ContextFlag = None,
    yes: Annotated[bool, wanted("--yes", "-y", help="--kubeconfig does not ask.")] = False,
) -> int:
    from gpunode.catalog.load import load_catalog
    from gpunode.cli.hosts import look_at, one_of, open_hosts
    from gpunode.cli.results import Labelled, choose, over_ssh, say_problems, show_result
    from gpunode.cli.verbs.detect import observed
    from gpunode.errors import worst
    from gpunode.kubernetes.labels import node_labels
    from gpunode.kubernetes.mig_labels import MIG_STRATEGIES
    from gpunode.kubernetes.release import kubernetes_release

    _refuse_unread(form, node, output, kubeconfig, context, yes=yes)
    one_of("--mig-strategy", mig_strategy, MIG_STRATEGIES)
    asked = kubernetes_release(kubernetes) if kubernetes is not None else None
    strategy = next((one for one in MIG_STRATEGIES if one == mig_strategy), MIG_STRATEGIES[0])
    if kubeconfig is not None:
        from gpunode.cli.verbs.k8s_labels_set import Wanted, set_labels
        from gpunode.kubernetes.labels_forms import node_name

        name = node_name(node) if node is not None else None
        return set_labels(Wanted(kubeconfig, context, name, strategy, asked, yes), hosts, output)
    choose(output, Labelled)
    with open_hosts(hosts) as named:
        if form and len(named) > 1:
            raise _one_host()
        report = look_at(named, hosts, output, observed)
    facts = {h.target: h.facts for h in report.hosts if h.facts}
    releases = {target: asked or _release(host) for target, host in facts.items()}
    catalog = load_catalog()
    found = {
        target: node_labels(host, catalog, mig_strategy=strategy, kubernetes=releases[target])
        for target, host in facts.items()
    }
    if form is None:
        show_result(Labelled(report, found), output)
    for target in facts if form else ():
        _write(form or "", facts[target], found[target], releases[target], node, output)
    say_problems(report, ssh=over_ssh(named))
    return int(worst(h.code for h in report.hosts))


def _refuse_unread(
    form: str | None, node: str | None, output: QuietOptions, kubeconfig: Path | None, context: str | None, *, yes: bool
) -> None:
    from gpunode.cli.hosts import one_of
    from gpunode.cli.verbs.k8s_cluster import refuse_context
    from gpunode.errors import UsageError
    from gpunode.kubernetes.labels_forms import LABEL_FORMS, node_name

    one_of("--form", form, LABEL_FORMS)
    if form and (output.json or output.format):
        raise UsageError("--form and --format exclude each other", remedy="leave one of them out")
    if form and kubeconfig is not None:
        raise UsageError(
            "--form and --kubeconfig exclude each other",
            evidence="the one prints labels for somebody else to set, the other sets them",
            remedy="leave one of them out",
        )
    refuse_context(kubeconfig, context)
    if yes and kubeconfig is None:
        raise UsageError("--yes is for --kubeconfig: nothing else here asks", remedy="leave it out")
    if node is not None and form != "kubectl" and kubeconfig is None:
        raise UsageError("--node is for --form kubectl and --kubeconfig", remedy="leave it out, or add --form kubectl")
    if node is not None:
        node_name(node)


def _one_host() -> Exception:
    from gpunode.errors import UsageError

    return UsageError("--form takes one host", remedy="name one host with --ssh")


def _release(host: HostFacts) -> Release | None:
    from gpunode.model.kubelet_program import kubelet_version
    from gpunode.model.versions import release

    return release(kubelet_version(host))


def _write(
    form: str, host: HostFacts, found: NodeLabels, kubernetes: Release | None, node: str | None, output: QuietOptions
) -> None:
    """Raises UnsupportedHost where there is nothing to write: an empty file would take a node's labels away."""
    from gpunode.cli.errors import say
    from gpunode.cli.output import deliver_file
    from gpunode.errors import UnsupportedHost
    from gpunode.kubernetes.documents import documents
    from gpunode.kubernetes.labels_forms import (
        FEATURES_D,
        features_d,
        label_command,
        label_patch,
        node_labels_flag,
        node_name,
        not_for_the_kubelet,
        who_may,
    )
    from gpunode.render.wording import with_name

    if not found.values:
        raise UnsupportedHost(
            with_name(host.target, "there are no labels to write"), evidence=next(iter(found.left_out.values()))
        )
    if form == "nfd":
        note = f"{FEATURES_D} is the file's place on the node; NFD takes nvidia.com/ with extraLabelNs: [nvidia.com]"
        text = features_d(found.values)
    elif form == "node-labels":
        note = "a kubelet sets these when its node registers, and never again"
        if host.kubernetes.joined:
            note = f"this node is in a cluster already, and the flag changes nothing on it: use another --form; {note}"
        if refused := not_for_the_kubelet(found.values, _release(host) or kubernetes):
            note = f"{refused}; {note}"
        text = node_labels_flag(found.values, kubernetes) + "\n"
    elif form == "patch":
        note = f"kubectl patch node NAME --type merge --patch-file FILE sets these, {who_may(found.values, kubernetes)}"
        text = documents([label_patch(found.values)])
    else:
        note = f"this sets them, {who_may(found.values, kubernetes)}"
        text = label_command(node_name(node or host.hostname), found.values) + "\n"
    deliver_file(text, output)
    if not output.quiet:
        say(f"gpunode: {note}")


def page(result: Labelled, style: Style) -> str:
    return "\n\n".join(_text(h, result.found[h.target]) for h in result.report.hosts if h.target in result.found)


def _text(host: HostOutcome, found: NodeLabels) -> str:
    names = [*found.values, *found.left_out]
    width = max(map(len, names))
    lines = [f"{host.target}   {len(found.values)} labels", ""]
    lines += [f"{name:<{width}}  {value}".rstrip() for name, value in found.values.items()]
    if found.left_out:
        lines += ["", "left out", *(f"{name:<{width}}  {why}" for name, why in found.left_out.items())]
    return "\n".join(lines)


def json_whole(result: Labelled, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": SCHEMA, "hosts": [_data(h, result) for h in result.report.hosts]})


def json_lines(result: Labelled, style: Style) -> str:
    from gpunode.render.encode import dumps

    each = ({"schema": SCHEMA, **_data(h, result)} for h in result.report.hosts)
    return "".join(dumps(one, indent=None) + "\n" for one in each)


def _data(host: HostOutcome, result: Labelled) -> dict[str, Any]:
    data: dict[str, Any] = {"target": host.target, "code": int(host.code)}
    if host.problem:
        return {**data, "problem": host.problem, "evidence": host.evidence, "remedy": host.remedy}
    if host.left_out:
        return {**data, "left_out_why": host.left_out}
    found = result.found[host.target]
    return {**data, "labels": dict(found.values), "left_out": dict(found.left_out)}
