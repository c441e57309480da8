"""The chain to allocatable GPUs: a link is there, missing with its cause, unknown with its reason, or not reached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.causes import folded
from gpunode.cli.app import main
from gpunode.errors import ExitCode, UnsupportedHost
from gpunode.kubernetes.chain import STEPS, Link, chain
from gpunode.model.facts import HostFacts, KubernetesFacts, RuntimeFacts
from gpunode.model.report import CheckReport
from tests.checks import hosts as h
from tests.checks import test_k8s as k

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
ENGINE = replace(h.CONTAINERD_ENGINE, effective_default="nvidia", handlers=("nvidia", "runc"))
RUNC = replace(ENGINE, effective_default="runc", handlers=("runc",))
OTHER_NAME = replace(  # as in AKS' images
    ENGINE, effective_default="nvidia-container-runtime", handlers=("nvidia-container-runtime", "runc")
)
SILENT = replace(ENGINE, effective_default=None, handlers=())


def links(host: HostFacts, engines: Sequence[RuntimeFacts] = (ENGINE,)) -> tuple[Link, ...]:
    report = folded(run_all(host, None, load_catalog(), today=h.TODAY))
    return chain(host, engines, report, "nvidia")


def states(found: Sequence[Link]) -> str:
    """ok, missing, unknown and not reached by their first letters."""
    return "".join(one.state[0] for one in found)


def test_a_node_that_is_well_has_every_link() -> None:
    found = links(k.WELL)
    assert [one.name for one in found] == ["handler", "socket", "checkpoint", "allocatable"]
    assert states(found) == "oooo"
    assert "nvidia.com/gpu 1" in found[3].says


NO_REASON = replace(k.WELL, kubernetes=replace(k.WELL_KUBERNETES, node=None))
ROWS: tuple[tuple[HostFacts, Sequence[RuntimeFacts], str, str | None, str], ...] = (
    (k.WELL, (RUNC,), "mooo", None, "has runc, default runc"),
    (k.WELL, (), "uooo", None, "no engine"),
    (k.WELL, (SILENT,), "uooo", None, "did not say"),
    (k.WELL, (ENGINE, replace(RUNC, unit="containerd-2.service")), "uooo", None, "which of containerd"),
    (k.down(), (ENGINE,), "omoo", "k8s.kubelet-up", "the kubelet does not run"),
    (k.swapping(False), (ENGINE,), "omoo", "k8s.swap", "kubelet.sock"),
    (k.kubernetes(joined=False), (ENGINE,), "omoo", None, "has not joined"),
    (k.plugins(kubelet_socket=False), (ENGINE,), "omoo", "k8s.dp-dir", "nvidia-gpu.sock"),
    (k.NEVER, (ENGINE,), "omno", "k8s.dp-container", "no socket of NVIDIA's"),
    (k.WAITS, (ENGINE,), "omno", "k8s.image-pull", "no socket of NVIDIA's"),
    (k.ENDS, (ENGINE,), "omno", "k8s.dp-container", "no socket of NVIDIA's"),
    (replace(k.BLIND, runtimes=(k.RUNC,)), (ENGINE,), "omno", None, "no socket of NVIDIA's"),
    (k.kubernetes(device_plugins=None), (OTHER_NAME,), "ouuo", None, "was not read"),
    (k.plugins(sockets={"nvidia-gpu.sock": False}), (ENGINE,), "omoo", "k8s.dp-socket", "is older than kubelet.sock"),
    (k.node(k.NEVER, taints=("NoSchedule team/gpu",)), (ENGINE,), "omno", "k8s.taints", "no socket"),
    (k.kubernetes(device_plugins=None), (ENGINE,), "ouuo", None, "was not read"),
    (k.plugins(registered=None), (ENGINE,), "oouo", None, "checkpoint was not read"),
    (k.plugins(registered={}), (ENGINE,), "oomo", "k8s.dp-registered", "checkpoint: no GPU"),
    (k.plugins(registered=k.CARDS), (ENGINE,), "oomo", "k8s.dp-registered", "checkpoint: no GPU"),
    (k.plugins(registered={"nvidia.com/gpu": ("GPU-other",)}), (ENGINE,), "oomo", "k8s.dp-registered", "gpu 1"),
    (NO_REASON, (ENGINE,), "ooou", None, "was not asked"),
    (replace(NO_REASON, unread={"node": "no kubectl of root"}), (ENGINE,), "ooou", None, "no kubectl of root"),
    (k.node(capacity={"cpu": "64"}), (ENGINE,), "ooom", "k8s.capacity", "capacity has no nvidia.com/gpu"),
    (k.node(capacity={"nvidia.com/gpu": "8"}, allocatable={}), (ENGINE,), "ooom", "k8s.capacity", "nothing"),
    (k.node(capacity=k.OF_CARDS, allocatable=k.OF_CARDS), (ENGINE,), "ooom", "k8s.capacity", "has no nvidia.com/gpu"),
    (k.node(capacity={"nvidia.com/gpu": "9" * 40}), (ENGINE,), "ooom", "k8s.capacity", ""),
    (k.node(capacity={"nvidia.com/gpu": "\x1b[2J"}), (ENGINE,), "ooom", "k8s.capacity", "capacity has no"),
    (k.node(unschedulable=True), (ENGINE,), "ooom", "k8s.node-ready", "capacity nvidia.com/gpu 1"),
    (k.condition("Ready", "False KubeletNotReady"), (ENGINE,), "ooom", "k8s.node-ready", "allocatable"),
)


@pytest.mark.parametrize(("host", "engines", "expected", "cause", "says"), ROWS)
def test_each_link(
    host: HostFacts, engines: Sequence[RuntimeFacts], expected: str, cause: str | None, says: str
) -> None:
    found = links(host, engines)
    assert states(found) == expected
    first = next(one for one in found if one.state != "ok")
    assert says in first.says
    if cause is not None:
        assert first.cause == cause
        assert first.finding is not None


def test_a_cause_is_one_that_nothing_explains() -> None:
    socket = links(replace(k.BLIND, runtimes=(k.RUNC,)))[1]
    assert socket.finding is not None
    assert socket.finding.cause is None
    assert socket.cause not in ("k8s.dp-socket", "k8s.runtimeclass")


def test_the_checks_of_the_chain_are_checks() -> None:
    known = {doc.id for doc in all_checks()}
    assert {id for step in STEPS for id in (*step.breaks, *step.others)} <= known


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (replace(k.WELL, kubernetes=KubernetesFacts()), "no kubelet"),
        (replace(k.WELL, pci=()), "no NVIDIA GPU"),
        (k.DRA, "a DRA driver"),
    ],
)
def test_where_no_device_plugin_is_to_be_it_is_refused(host: HostFacts, says: str) -> None:
    with pytest.raises(UnsupportedHost, match=says):
        chain(host, (), CheckReport("x"), "nvidia")


def run(capsys: pytest.CaptureFixture[str], host: str, *words: str) -> tuple[int, str, str]:
    code = main(["k8s", "verify", "--recorded", str(EXAMPLES / host), *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_page_of_a_node_that_is_well_names_the_pod_that_proves_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ubuntu2404-node-l40s-ready")
    assert code == ExitCode.DONE
    assert "4 of 4 links" in out
    assert "gpunode k8s verify --pod" in out


def test_the_page_of_a_broken_chain_names_cause_and_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run(capsys, "ubuntu2404-node-plugin-died-l40s")
    assert code == ExitCode.FAILED
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["ok", "missing"]
    assert "k8s.dp-container: the device plugin does not run" in out
    assert "not reached" in out
    assert "gpunode k8s pod" not in out


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ubuntu2404-node-plugin-died-l40s", "--json")
    (host,) = json.loads(out)["hosts"]
    assert code == host["code"] == ExitCode.FAILED
    assert [one["state"] for one in host["links"]] == ["ok", "missing", "not reached", "not reached"]
    assert host["links"][1]["cause"]["id"] == "k8s.dp-container"
    assert host["links"][0]["cause"] is None


def test_a_host_without_kubernetes_is_not_supported(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "debian12-ready")
    assert (code, out) == (ExitCode.UNSUPPORTED, "")
    assert "no kubelet" in err
