"""gpunode k8s verify: the chain from the engine to GPUs that the cluster can give out, and where it is broken."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gpunode.cli.options.groups import HostOptions, QuietOptions, wanted
from gpunode.cli.options.verb import verb
from gpunode.cli.verbs.k8s_cluster import ContextFlag

if TYPE_CHECKING:
    import typer

    from gpunode.cli.results import Verified
    from gpunode.cli.verbs.k8s_verify_pod import Wanted
    from gpunode.cluster.pod import Trials
    from gpunode.cluster.server import Server
    from gpunode.errors import ExitCode
    from gpunode.fleet.host import Host
    from gpunode.kubernetes.chain import Link
    from gpunode.model.facts import HostFacts
    from gpunode.model.report import HostOutcome
    from gpunode.render.style import Style

SCHEMA = "gpunode.k8s-verify/1"
COLOUR = {"ok": "good", "missing": "bad", "unknown": "warn", "not reached": "dim"}


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "verify",
        help="Show the chain from the engine to GPUs that the cluster gives out, and what breaks it. Changes nothing; "
        "with --pod a pod is started and deleted.",
        examples=(
            "gpunode k8s verify",
            "gpunode k8s verify --ssh gpu[01-12]",
            "gpunode k8s verify --ssh gpu07 --pod --kubeconfig ~/.kube/config",
        ),
    )(verify)


def verify(
    hosts: HostOptions,
    output: QuietOptions,
    pod: Annotated[
        bool, wanted("--pod", help="The last link too: start a pod that uses a GPU of the node, and delete it.")
    ] = False,
    kubeconfig: Annotated[
        Path | None,
        wanted("--kubeconfig", metavar="FILE", help="Ask this cluster's API from here, not the host's kubectl."),
    ] = None,
    context: ContextFlag = None,
    host_kubeconfig: Annotated[
        str | None, wanted("--host-kubeconfig", metavar="PATH", help="On the host, of who may create pods (for --pod).")
    ] = None,
    image: Annotated[
        str | None, wanted("--image", metavar="IMAGE", help="A mirror's, of the same program (for --pod).")
    ] = None,
    node: Annotated[
        str | None,
        wanted("--node", metavar="NAME", help="The node's name (default: its label, or the host's)."),
    ] = None,
) -> int:
    from gpunode.cli.hosts import PROBE, look_at, open_hosts
    from gpunode.cli.results import Verified, choose, over_ssh, say_problems, show_result
    from gpunode.cli.verbs.k8s_cluster import open_cluster, refuse_context
    from gpunode.cli.verbs.k8s_verify_pod import BY_THE_HOST, THROUGH_API, Wanted, naming_left, refuse_unread
    from gpunode.cluster.pod import Trials
    from gpunode.errors import UsageError, worst

    want = Wanted(host_kubeconfig, image, node, pod=pod)
    refuse_context(kubeconfig, context)
    refuse_unread(want, hosts, through_api=kubeconfig is not None)
    choose(output, Verified)
    chains: dict[str, tuple[Link, ...]] = {}
    trials = Trials()
    cluster = open_cluster(kubeconfig, context) if kubeconfig is not None else nullcontext()
    left = (BY_THE_HOST if kubeconfig is None else THROUGH_API) if pod else PROBE
    with cluster as server, open_hosts(hosts) as named, naming_left(trials.there):
        if node is not None and len(named) > 1:
            raise UsageError("--node takes one host", remedy="name one host with --ssh")
        ssh = over_ssh(named)

        def work(host: Host) -> HostOutcome:
            return _verified(host, chains, want, server, trials)

        report = look_at(named, hosts, output, work, stop=trials.stop, left=left)
    show_result(Verified(report, chains, ssh), output)
    say_problems(report, ssh=ssh)
    return int(worst(h.code for h in report.hosts))


def _verified(
    host: Host, chains: dict[str, tuple[Link, ...]], want: Wanted, server: Server | None, trials: Trials
) -> HostOutcome:
    from gpunode.cli.verbs.check_host import checked
    from gpunode.cli.verbs.k8s_verify_pod import pod_of, with_node
    from gpunode.engines.kubernetes.pod_engines import pod_engines
    from gpunode.kubernetes.chain import chain
    from gpunode.model.report import HostOutcome
    from gpunode.model.spec import Spec

    spec, more = Spec(), None
    if server is not None:

        def more(host: Host, facts: HostFacts, spec: Spec) -> HostFacts:
            return with_node(facts, server, want)

    report = checked(host, spec, strict=False, more=more).check
    assert report is not None
    assert report.facts is not None
    links = chain(report.facts, pod_engines(report.facts), report, spec.runtime.handler)
    if want.pod:
        links = (*links, pod_of(host, report.facts, links, spec.runtime.handler, want, server, trials))
    chains[str(host)] = links
    return HostOutcome(str(host), _code(links), check=report)


def _code(links: tuple[Link, ...]) -> ExitCode:
    """What is not known is not shown to work."""
    from gpunode.errors import ExitCode

    return ExitCode.DONE if all(one.state == "ok" for one in links) else ExitCode.FAILED


def page(result: Verified, style: Style) -> str:
    hosts = [h for h in result.report.hosts if h.target in result.chains]
    return "\n\n".join(_text(h.target, result.chains[h.target], style, ssh=result.ssh) for h in hosts)


def _text(target: str, links: tuple[Link, ...], style: Style, *, ssh: bool) -> str:
    from gpunode.kubernetes.chain import POD
    from gpunode.render.style import hang, paint

    whole = sum(one.state == "ok" for one in links)
    lines = [*hang(style, "", f"{target}   {whole} of {len(links)} links to GPUs that the cluster gives out"), ""]
    state, name = max(map(len, COLOUR)), max(len(one.name) for one in links)
    for one in links:
        lead = f"{paint(style, COLOUR[one.state], f'{one.state:<{state}}')}  {one.name:<{name}}  "
        lines += hang(style, lead, one.says, lead_width=state + name + 4)
        lines += _cause(one, (target,) if ssh else (), style)
    if whole == len(links) and links[-1].name != POD:
        lines += ["", *hang(style, "", "gpunode k8s verify --pod    starts a pod that uses one, and deletes it")]
    return "\n".join(lines)


def _cause(one: Link, hosts: tuple[str, ...], style: Style) -> list[str]:
    from gpunode.render.check_text import detail
    from gpunode.render.remedy_text import remedy_text

    if one.state == "missing" and one.finding is None:
        return detail("cause", "no check has found one: kubectl describe pod, and the plugin's log", style)
    if one.finding is None:
        return []
    return [
        *detail("cause", f"{one.cause}: {one.finding.summary}", style),
        *detail("evidence", one.finding.evidence, style),
        *detail("remedy", remedy_text(one.finding.remedy, hosts), style),
    ]


def json_whole(result: Verified, style: Style) -> str:
    from gpunode.render.encode import dumps

    return dumps({"schema": SCHEMA, "hosts": [_data(h, result) for h in result.report.hosts]})


def json_lines(result: Verified, style: Style) -> str:
    from gpunode.render.encode import dumps

    each = ({"schema": SCHEMA, **_data(h, result)} for h in result.report.hosts)
    return "".join(dumps(one, indent=None) + "\n" for one in each)


def _data(host: HostOutcome, result: Verified) -> dict[str, Any]:
    data: dict[str, Any] = {"target": host.target, "code": int(host.code)}
    if host.problem:
        return {**data, "problem": host.problem, "evidence": host.evidence, "remedy": host.remedy}
    if host.left_out:
        return {**data, "left_out_why": host.left_out}
    return {**data, "links": [_link(one) for one in result.chains[host.target]]}


def _link(one: Link) -> dict[str, Any]:
    found = one.finding
    cause = found and {
        "id": one.cause,
        "summary": found.summary,
        "evidence": found.evidence,
        "action": found.remedy.action.value,
        "remedy": found.remedy.text,
    }
    return {"link": one.name, "state": one.state, "evidence": one.says, "cause": cause}
