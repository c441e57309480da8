"""gpunode k8s verify: the chain from the engine to GPUs that the cluster can give out, and where it is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpunode.cli.options.groups import HostOptions, QuietOptions, verb, wanted

if TYPE_CHECKING:
    from gpunode.cli.results import Verified
    from gpunode.errors import ExitCode
    from gpunode.fleet.host import Host
    from gpunode.kubernetes.chain import Link
    from gpunode.model.facts import HostFacts
    from gpunode.model.pod_trial import PodTrial
    from gpunode.model.report import HostOutcome
    from gpunode.render.style import Style

SCHEMA = "gpunode.k8s-verify/1"
GPU = "nvidia.com/gpu"
POD_LIMIT_S = 120  # an image of 200 MB is pulled the first time
COLOUR = {"ok": "good", "missing": "bad", "unknown": "warn", "not reached": "dim"}


def register(k8s: typer.Typer) -> None:
    verb(
        k8s,
        "verify",
        help="Show the chain from the engine to GPUs that the cluster gives out, and what breaks it. Changes nothing; "
        "with --pod a pod is started and deleted.",
        examples=("gpunode k8s verify", "gpunode k8s verify --ssh gpu[01-12]", "gpunode k8s verify --pod"),
    )(verify)


@dataclass(frozen=True)
class Wanted:
    """Of the test pod; None: there is to be none."""

    kubeconfig: str = "-"
    image: str | None = None
    node: str | None = None


def verify(
    hosts: HostOptions,
    output: QuietOptions,
    pod: Annotated[
        bool, wanted("--pod", help="The last link too: start a pod that uses a GPU of the node, and delete it.")
    ] = False,
    kubeconfig: Annotated[
        str | None, wanted("--kubeconfig", metavar="PATH", help="On the host, of who may create pods (for --pod).")
    ] = None,
    image: Annotated[
        str | None, wanted("--image", metavar="IMAGE", help="A mirror's, of the same program (for --pod).")
    ] = None,
    node: Annotated[
        str | None,
        wanted("--node", metavar="NAME", help="The node's name (for --pod; default: its label, or the host's)."),
    ] = None,
) -> int:
    from gpunode.cli.hosts import open_hosts
    from gpunode.cli.results import Verified, choose, look_at, over_ssh, say_problems, show_result
    from gpunode.errors import worst

    want = _wanted(hosts, kubeconfig, image, node, pod=pod)
    choose(output, Verified)
    chains: dict[str, tuple[Link, ...]] = {}
    with open_hosts(hosts) as named:
        ssh = over_ssh(named)
        report = look_at(named, hosts, output, lambda host: _verified(host, chains, want))
    show_result(Verified(report, chains, ssh), output)
    say_problems(report, ssh=ssh)
    return int(worst(h.code for h in report.hosts))


def _wanted(
    hosts: HostOptions, kubeconfig: str | None, image: str | None, node: str | None, *, pod: bool
) -> Wanted | None:
    """Raises UsageError for what would be ignored, or cannot be."""
    from gpunode.errors import UsageError
    from gpunode.kubernetes.labels_forms import node_name
    from gpunode.kubernetes.pod_rules import image_name

    typed = {"--kubeconfig": kubeconfig, "--image": image, "--node": node}
    if not pod:
        for name, value in typed.items():
            if value is not None:
                raise UsageError(f"{name} is for --pod", remedy="add --pod, or leave it out")
        return None
    if hosts.recorded:
        raise UsageError("--pod is for hosts: a recording runs nothing", remedy="leave it out, or name hosts")
    if kubeconfig is not None and not kubeconfig.startswith("/"):
        raise UsageError(
            f"--kubeconfig {kubeconfig[:80]} is no absolute path",
            evidence="it is a file of the host",
            remedy="name it from / on",
        )
    return Wanted(
        kubeconfig or "-",
        image_name(image) if image is not None else None,
        node_name(node) if node is not None else None,
    )


def _verified(host: Host, chains: dict[str, tuple[Link, ...]], want: Wanted | None) -> HostOutcome:
    from gpunode.cli.verbs.check import checked
    from gpunode.engines.kubernetes.pod_engines import pod_engines
    from gpunode.kubernetes.chain import chain
    from gpunode.model.report import HostOutcome
    from gpunode.model.spec import Spec

    spec = Spec()
    report = checked(host, spec, strict=False).check
    assert report is not None
    assert report.facts is not None
    links = chain(report.facts, pod_engines(report.facts), report, spec.runtime.handler)
    if want is not None:
        links = (*links, _pod(host, report.facts, links, spec.runtime.handler, want))
    chains[str(host)] = links
    return HostOutcome(str(host), _code(links), check=report)


def _pod(host: Host, facts: HostFacts, links: tuple[Link, ...], handler: str, want: Wanted) -> Link:
    from gpunode.kubernetes.chain import POD, Link, pod_link

    before = next((one.name for one in links if one.state == "missing"), None)
    if before is not None:
        return Link(POD, "not reached", f"{before} is missing")
    return pod_link(_trial(host, facts, handler, want))


def _trial(host: Host, facts: HostFacts, handler: str, want: Wanted) -> PodTrial:
    import json
    import secrets

    from gpunode.catalog.test_images import image_for
    from gpunode.engines.kubernetes.pod_engines import pod_engines
    from gpunode.facts.active import start_pod
    from gpunode.kubernetes.labels_forms import node_name
    from gpunode.kubernetes.pods import PodRequest, bound_pod
    from gpunode.model.versions import driver_numbers

    known = facts.kubernetes.node
    node = want.node or node_name((known and known.labels.get("kubernetes.io/hostname")) or facts.hostname)
    offers = sorted(name for name, count in (known.allocatable if known else {}).items() if _is_offered(name, count))
    default = any(one.effective_default == handler for one in pod_engines(facts))
    branch = driver_numbers(facts.driver.loaded)
    request = PodRequest(
        want.image or image_for(branch[0] if branch else None).image,
        resource=offers[0] if offers else GPU,
        runtime_class=None if default else handler,
    )
    name = f"gpunode-verify-{secrets.token_hex(4)}"
    manifest = json.dumps(bound_pod(request, name, node, POD_LIMIT_S))
    return start_pod(host.transport, name, manifest, kubeconfig=want.kubeconfig, limit_s=POD_LIMIT_S)


def _is_offered(name: str, count: str) -> bool:
    """GPUs, shared ones and MIG instances; other resources below nvidia.com are of network cards."""
    return count != "0" and (name == GPU or name.startswith(("nvidia.com/gpu.", "nvidia.com/mig-")))


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
