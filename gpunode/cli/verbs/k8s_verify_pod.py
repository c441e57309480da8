"""The last link of `k8s verify`: a pod on the host's node, by the host's own kubectl or through the API from here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.cli.options.groups import HostOptions
    from gpunode.cluster.pod import Trials
    from gpunode.cluster.server import Server
    from gpunode.fleet.host import Host
    from gpunode.kubernetes.chain import Link
    from gpunode.kubernetes.documents import Object
    from gpunode.model.facts import HostFacts
    from gpunode.model.pod_trial import PodTrial

POD_LIMIT_S = 120  # an image of 200 MB is pulled the first time
# What becomes of a pod when a second Ctrl-C leaves it:
THROUGH_API = "pods of the test that are not gone by then are named"
BY_THE_HOST = "a host deletes the test's pod by itself"


@dataclass(frozen=True)
class Wanted:
    """As it was typed; None: it was not."""

    host_kubeconfig: str | None = None  # a file of the host
    image: str | None = None
    node: str | None = None
    pod: bool = False


def refuse_unread(want: Wanted, hosts: HostOptions, *, through_api: bool) -> None:
    """Raises UsageError for what would be ignored, or cannot be."""
    from gpunode.errors import UsageError
    from gpunode.kubernetes.labels_forms import node_name
    from gpunode.kubernetes.pod_rules import image_name

    typed = {"--host-kubeconfig": want.host_kubeconfig, "--image": want.image}
    if not through_api:
        typed["--node"] = want.node
    for name, value in typed.items() if not want.pod else ():
        if value is not None:
            raise UsageError(f"{name} is for --pod", remedy="add --pod, or leave it out")
    if hosts.recorded and (want.pod or through_api):
        flag, why = ("--pod", "runs nothing") if want.pod else ("--kubeconfig", "says nothing of today's cluster")
        raise UsageError(f"{flag} is for hosts: a recording {why}", remedy="leave it out, or name hosts")
    if through_api and want.host_kubeconfig is not None:
        raise UsageError("--kubeconfig and --host-kubeconfig exclude each other", remedy="choose one")
    if want.host_kubeconfig is not None and not want.host_kubeconfig.startswith("/"):
        raise UsageError(
            f"--host-kubeconfig {want.host_kubeconfig[:80]} is no absolute path",
            evidence="it is a file of the host",
            remedy="name it from / on",
        )
    if want.image is not None:
        image_name(want.image)
    if want.node is not None:
        node_name(want.node)


@contextmanager
def naming_left(there: Collection[str]) -> Iterator[None]:
    """Ctrl-C leaves without a result: what may still be in the cluster then is said on the way out."""
    from gpunode.cli.errors import say

    try:
        yield
    except KeyboardInterrupt:
        if names := sorted(there):
            say(f"gpunode: this may have left pods in the cluster: kubectl delete pod {' '.join(names)}")
        raise


def with_node(facts: HostFacts, server: Server, want: Wanted) -> HostFacts:
    """With the node's object as the API has it. Raises what node_of does."""
    from gpunode.cli.verbs.k8s_cluster import node_of
    from gpunode.kubernetes.labels_forms import node_name

    seen = node_of(server, facts, node_name(want.node) if want.node is not None else None)
    before = facts.kubernetes.node
    node = replace(seen.facts, images=before.images if before else None)
    unread = {name: why for name, why in facts.unread.items() if name != "node"}
    return replace(facts, unread=unread, kubernetes=replace(facts.kubernetes, node=node, node_name=seen.name))


def pod_of(
    host: Host,
    facts: HostFacts,
    links: tuple[Link, ...],
    handler: str,
    want: Wanted,
    server: Server | None,
    trials: Trials | None = None,
) -> Link:
    from gpunode.kubernetes.chain import POD, Link, pod_link

    before = next((one.name for one in links if one.state == "missing"), None)
    if before is not None:
        return Link(POD, "not reached", f"{before} is missing")
    return pod_link(_trial(host, facts, handler, want, server, trials))


def _trial(
    host: Host, facts: HostFacts, handler: str, want: Wanted, server: Server | None, trials: Trials | None
) -> PodTrial:
    import json
    import secrets

    from gpunode.cli.verbs.k8s_cluster import node_name_of
    from gpunode.kubernetes.labels_forms import node_name
    from gpunode.kubernetes.pods import TEST_PREFIX

    name = f"{TEST_PREFIX}{secrets.token_hex(4)}"
    node = node_name(want.node) if want.node is not None else node_name_of(facts)
    manifest = _manifest(name, node, facts, handler, want.image)
    if server is None:
        from gpunode.facts.active import start_pod

        kubeconfig = want.host_kubeconfig or "-"
        text = json.dumps(manifest)
        return start_pod(host.transport, name, text, node, kubeconfig=kubeconfig, limit_s=POD_LIMIT_S)
    from gpunode.cluster.pod import run_pod
    from gpunode.kubernetes.chain import MIRROR_PODS
    from gpunode.model.pod_trial import PodTrial

    if server.node is not None:
        return PodTrial(name, says=f"the kubeconfig is of node {server.node}, which may not: {MIRROR_PODS}")
    return run_pod(server, name, manifest, POD_LIMIT_S, trials)


def _manifest(name: str, node: str, facts: HostFacts, handler: str, image: str | None) -> Object:
    from gpunode.catalog.test_images import image_for
    from gpunode.engines.kubernetes.pod_engines import pod_engines
    from gpunode.kubernetes.pods import PodRequest, bound_pod
    from gpunode.model.kubernetes import GPU, is_of_gpus
    from gpunode.model.versions import driver_numbers

    known = facts.kubernetes.node
    offered = (known.allocatable if known else {}).items()
    offers = sorted(name for name, count in offered if count != "0" and is_of_gpus(name))
    default = any(one.effective_default == handler or one.nvidia_by_default for one in pod_engines(facts))
    branch = driver_numbers(facts.driver.loaded)
    request = PodRequest(
        image or image_for(branch[0] if branch else None).image,
        resource=offers[0] if offers else GPU,
        runtime_class=None if default else handler,
    )
    return bound_pod(request, name, node, POD_LIMIT_S)
