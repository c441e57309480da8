"""gpunode k8s verify --kubeconfig: the node's object comes from the API, and what rests on it with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.cli.verbs.check_host import judged
from gpunode.cli.verbs.k8s_verify_pod import Wanted, pod_of, with_node
from gpunode.cluster.kubeconfig import read_kubeconfig
from gpunode.cluster.pod import Trials
from gpunode.cluster.server import Server, open_server
from gpunode.engines.kubernetes.pod_engines import pod_engines
from gpunode.errors import UnsupportedHost
from gpunode.facts.collect import collect
from gpunode.fleet.host import Host
from gpunode.kubernetes.chain import Link, chain
from gpunode.model.facts import HostFacts
from gpunode.model.spec import Spec
from gpunode.transport.recorded import Recorded
from tests.cluster.api_server import ApiServer, Authority, kubeconfig

SAMPLE = Path(__file__).parents[2] / "examples" / "hosts" / "ubuntu2404-node-l40s-ready"
HOST = Host(Recorded((SAMPLE / "facts.txt").read_bytes(), "gpu07"), recorded=True)


@contextmanager
def asking(config: Path) -> Iterator[Server]:
    with open_server(read_kubeconfig(config, None)) as server:
        yield server


def silent() -> HostFacts:
    """The sample without a kubectl: nobody told it of its node."""
    facts = collect(HOST.transport)
    unread = {**facts.unread, "node": "no kubectl of root is here to ask the API server with"}
    return replace(facts, unread=unread, kubernetes=replace(facts.kubernetes, node=None, node_name=None))


def links(facts: HostFacts) -> dict[str, Link]:
    report = judged(HOST, facts, Spec(), False, (), ()).check
    assert report is not None
    return {one.name: one for one in chain(facts, pod_engines(facts), report, "nvidia")}


@pytest.mark.parametrize(
    ("ready", "allocatable", "state", "says"),
    [
        ("True", "2", "ok", "capacity nvidia.com/gpu 2; allocatable nvidia.com/gpu 2"),
        ("True", "0", "missing", "capacity nvidia.com/gpu 2; allocatable nvidia.com/gpu 0"),
        ("False", "2", "missing", "capacity nvidia.com/gpu 2; allocatable nvidia.com/gpu 2"),
    ],
)
def test_the_last_link_by_the_clusters_own_word(
    server: ApiServer, config: Path, ready: str, allocatable: str, state: str, says: str
) -> None:
    assert links(silent())["allocatable"].state == "unknown"
    status = server.node["status"]
    status["capacity"], status["allocatable"] = {"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": allocatable}
    status["conditions"] = [{"type": "Ready", "status": ready, "reason": "KubeletNotReady"}]
    with asking(config) as asked:
        facts = with_node(silent(), asked, Wanted(node="GPU07"))
    assert facts.kubernetes.node_name == "gpu07"  # what its pod is bound to
    found = links(facts)["allocatable"]
    assert (found.state, found.says) == (state, says)


def test_another_machines_node_is_not_taken_for_this_ones(server: ApiServer, config: Path) -> None:
    server.node["status"]["nodeInfo"]["kernelVersion"] = "5.15.0-1-other"
    server.answers["GET", f"/api/v1/nodes/{SAMPLE.name}"] = lambda h: h.say(200, server.node)
    with asking(config) as asked, pytest.raises(UnsupportedHost, match="is not this host, by its kernel"):
        with_node(silent(), asked, Wanted())


def test_another_machine_of_the_same_image_is_not_taken_for_this_one(server: ApiServer, config: Path) -> None:
    """Staging and production have a gpu07 each; --context names the wrong one."""
    info = server.node["status"]["nodeInfo"]
    here = replace(silent(), kernel=replace(silent().kernel, boot_id="763bc20e-1e78-4731-b993-2f6418be2d8e"))
    info |= {"kernelVersion": here.kernel.release, "bootID": "ffffffff-0000-4000-8000-000000000000"}
    server.answers["GET", f"/api/v1/nodes/{SAMPLE.name}"] = lambda h: h.say(200, server.node)
    stopped = replace(here, kubernetes=replace(here.kubernetes, running=False))
    with asking(config) as asked:
        with pytest.raises(UnsupportedHost, match="is not this host, by its boot"):
            with_node(here, asked, Wanted())
        assert with_node(stopped, asked, Wanted()).kubernetes.node, "a kubelet that is down since told of no boot"
        info["bootID"] = here.kernel.boot_id
        assert with_node(here, asked, Wanted()).kubernetes.node


def test_a_nodes_identity_does_not_even_ask_for_a_pod(server: ApiServer, authority: Authority, place: Path) -> None:
    certificate, key = authority.certify("system:node:gpu07", "system:nodes")
    (place / "client.pem").write_text(certificate + key)
    user = {"client-certificate": "client.pem", "client-key": "client.pem"}
    with asking(kubeconfig(place, server.address, authority.pem, user)) as asked:
        link = pod_of(HOST, silent(), (), "nvidia", Wanted(pod=True), asked)
    assert link.state == "unknown"
    assert "node gpu07, which may not: NodeRestriction: mirror pods alone" in link.says
    assert server.asked == []


def test_a_host_whose_turn_comes_after_ctrl_c_starts_no_pod(server: ApiServer, config: Path) -> None:
    trials = Trials()
    trials.stop.set()
    with asking(config) as asked:
        link = pod_of(HOST, silent(), (), "nvidia", Wanted(pod=True, node="gpu07"), asked, trials)
    assert (link.state, link.says) == ("unknown", "it was not made: gpunode was stopped before that")
    assert server.asked == []
