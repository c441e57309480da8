"""The test pod through the API: in every ending it is deleted, and what is not known is not shown to work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpunode.cli.hosts import look_at
from gpunode.cli.options.groups import HostOptions, QuietOptions
from gpunode.cli.verbs.k8s_verify_pod import THROUGH_API, naming_left
from gpunode.cluster.kubeconfig import read_kubeconfig
from gpunode.cluster.pod import Trials, run_pod
from gpunode.cluster.server import Server, open_server
from gpunode.errors import ExitCode
from gpunode.fleet.host import Host
from gpunode.kubernetes.chain import pod_link
from gpunode.kubernetes.pods import PodRequest, bound_pod
from gpunode.model.pod_trial import PodTrial
from gpunode.model.report import HostOutcome
from gpunode.transport.recorded import Recorded
from tests.cluster.api_server import PODS, ApiServer, Handler, status

NAME = "gpunode-verify-0badcafe"
POD = f"{PODS}/{NAME}"
MANIFEST = bound_pod(PodRequest("registry.example/vectoradd:12.5", runtime_class="nvidia"), NAME, "gpu07", 120)
SPEC: Any = MANIFEST["spec"]
EXITED = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}
PULLING = {
    "phase": "Pending",
    "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "x"}}}],
}


class Cluster:
    """Has the pod from its making until its deletion, in these states one after the other."""

    def __init__(self, server: ApiServer, *states: object, log: str = "Test PASSED\n") -> None:
        self.server, self.states, self.there = server, list(states), False
        server.answers |= {
            ("POST", PODS): self.make,
            ("GET", POD): self.show,
            ("DELETE", POD): self.delete,
            ("GET", f"{POD}/log"): lambda h: self.say_log(h, log),
        }

    def make(self, handler: Handler) -> None:
        self.there = True
        handler.say(201, MANIFEST)

    def show(self, handler: Handler) -> None:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        handler.say(200 if self.there else 404, {"status": state} if self.there else status(404, "not found"))

    def delete(self, handler: Handler) -> None:
        handler.say(200 if self.there else 404, {})
        self.there = False

    def say_log(self, handler: Handler, log: str) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(log.encode())))
        handler.end_headers()
        handler.wfile.write(log.encode())


@contextmanager
def asking(config: Path) -> Iterator[Server]:
    with open_server(read_kubeconfig(config, None)) as server:
        yield server


def tried(config: Path, limit_s: int = 60) -> PodTrial:
    with asking(config) as server:
        return run_pod(server, NAME, MANIFEST, limit_s, pause=lambda seconds: None)


@pytest.mark.parametrize(
    ("states", "state", "says"),
    [
        ([{}, {"phase": "Pending"}, {"phase": "Succeeded"}], "ok", "Succeeded; its last line: Test PASSED"),
        ([EXITED], "missing", "Failed (3 Error); its last line: Test PASSED"),
        ([{"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "Node didn't have enough"}], "unknown",
         "Failed (OutOfnvidia.com/gpu, Node didn't have enough); its last line: Test PASSED"),
        ([[], {"phase": ["Succeeded"], "containerStatuses": {}}, {"phase": "Succeeded", "containerStatuses": [1, []]}],
         "ok", "Succeeded; its last line: Test PASSED"),
    ],
    ids=["it ran", "its program failed", "no GPU is free", "objects of any form"],
)  # fmt: skip
def test_what_came_of_it(server: ApiServer, config: Path, states: list[object], state: str, says: str) -> None:
    cluster = Cluster(server, *states)
    link = pod_link(tried(config))
    assert (link.state, link.says) == (state, says)
    assert not cluster.there
    container = {**SPEC["containers"][0], "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    assert server.made == [{**MANIFEST, "spec": {**SPEC, "containers": [container]}}]


def test_one_that_does_not_end_is_deleted_when_its_time_is_over(server: ApiServer, config: Path) -> None:
    cluster = Cluster(server, PULLING, log="")
    trial = tried(config, 0)
    assert (trial.phase, trial.says, trial.left) == ("Pending", "ErrImagePull: x", "")
    assert not cluster.there


@pytest.mark.parametrize(
    ("says", "more"),
    [
        ('pods "x" is forbidden: User "ci" cannot create resource "pods" in API group ""', ": it takes the rights to"),
        (
            'pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
            "; gpunode k8s device-plugin --runtime",
        ),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', ""),
        ('pods "x" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=1', ""),
    ],
    ids=["rights", "an object that is not there", "admission", "a quota"],
)
def test_what_a_refusal_asks_for_is_told(says: str, more: str) -> None:
    found = pod_link(PodTrial("gpunode-verify-1", says=says)).says
    assert found.startswith(f"it was not made: {says}{more}")
    assert bool(more) or found.endswith(says)


def test_what_may_not_be_made_names_the_rights_and_deletes_nothing(server: ApiServer, config: Path) -> None:
    server.answers["POST", PODS] = lambda h: h.say(403, status(403, 'pods is forbidden: User "ci" cannot create'))
    link = pod_link(tried(config))
    assert link.state == "unknown"
    assert 'pods is forbidden: User "ci" cannot create' in link.says
    assert "it takes the rights to create, get and delete pods" in link.says
    assert [verb for verb, _ in server.asked] == ["GET", "POST"]  # the first for what others left


def test_a_making_without_an_answer_is_deleted_and_named(server: ApiServer, config: Path) -> None:
    def silent(handler: Handler) -> None:
        handler.close_connection = True

    cluster = Cluster(server, {"phase": "Pending"})
    server.answers["POST", PODS] = silent
    cluster.there = True  # it was made all the same
    trial = tried(config)
    assert (trial.phase, trial.left) == ("", "")  # it was seen, and is gone
    assert not cluster.there
    link = pod_link(trial)
    assert link.state == "unknown"
    assert "may still be there" not in link.says


def test_a_making_that_may_still_come_is_named(server: ApiServer, config: Path) -> None:
    Cluster(server, {"phase": "Pending"})
    server.answers["POST", PODS] = lambda h: h.say(504, status(504, "Timeout: request did not complete"))
    trials = Trials()
    with asking(config) as asked:
        trial = run_pod(asked, NAME, MANIFEST, 60, trials)
    assert trial.left == "its making may still come"
    assert f"kubectl delete pod {NAME}" in pod_link(trial).says
    assert trials.there == {NAME}


def test_a_gateways_limit_is_no_answer(server: ApiServer, config: Path) -> None:
    cluster = Cluster(server, {"phase": "Pending"})
    server.answers["POST", PODS] = lambda h: h.say(504, status(504, "Timeout: request did not complete"))
    cluster.there = True
    trial = tried(config)
    assert (trial.says, trial.left) == ("Timeout: request did not complete", "")
    assert not cluster.there


def test_a_server_that_restarts_meanwhile_is_asked_again(server: ApiServer, config: Path) -> None:
    cluster = Cluster(server, {"phase": "Succeeded"})
    show, answers = cluster.show, [lambda h: h.say(503, status(503, "shutting down"))]

    def once(handler: Handler) -> None:
        answers.pop()(handler) if answers else show(handler)

    server.answers["GET", POD] = once
    assert pod_link(tried(config)).state == "ok"


def test_a_pod_that_somebody_deletes_meanwhile_is_not_known(server: ApiServer, config: Path) -> None:
    cluster = Cluster(server, {"phase": "Pending"})

    def gone(handler: Handler) -> None:
        cluster.there = False
        cluster.show(handler)

    server.answers["GET", POD] = gone
    link = pod_link(tried(config))
    assert link.state == "unknown"
    assert link.says.startswith("Unknown (")
    assert "404 not found" in link.says


def test_one_that_cannot_be_deleted_is_no_success(server: ApiServer, config: Path) -> None:
    Cluster(server, {"phase": "Succeeded"})
    server.answers["DELETE", POD] = lambda h: h.say(403, status(403, "cannot delete"))
    link = pod_link(tried(config))
    assert link.state == "unknown"
    assert f"kubectl delete pod {NAME} (cannot delete)" in link.says


def test_ctrl_c_deletes_it(server: ApiServer, config: Path) -> None:
    cluster = Cluster(server, {"phase": "Running"})

    def strikes(seconds: float) -> None:
        if cluster.there:
            raise KeyboardInterrupt

    with asking(config) as asked, pytest.raises(KeyboardInterrupt):
        run_pod(asked, NAME, MANIFEST, 60, pause=strikes)
    assert not cluster.there


def test_a_stop_deletes_it_at_once(server: ApiServer, config: Path) -> None:
    cluster, trials = Cluster(server, {"phase": "Running"}), Trials()

    def strikes(seconds: float) -> None:
        assert trials.there == {NAME}
        assert not trials.stop.is_set()
        trials.stop.set()

    with asking(config) as asked:
        trial = run_pod(asked, NAME, MANIFEST, 60, trials, pause=strikes)
        assert (trial.phase, trial.left, trials.there) == ("Running", "", set())
        assert not cluster.there
        before = len(server.asked)
        assert run_pod(asked, NAME, MANIFEST, 60, trials).phase == ""
        assert len(server.asked) == before  # and none is made any more


def test_after_a_stop_the_end_is_not_waited_for_long(
    server: ApiServer, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpunode.cluster.pod.HURRIED_S", 0.2)
    monkeypatch.setattr("gpunode.cluster.pod.GONE_S", 9.0)
    Cluster(server, {"phase": "Running"})
    server.answers["DELETE", POD] = lambda h: h.say(200, {})  # its kubelet is silent
    trials = Trials()

    def strikes(seconds: float) -> None:
        trials.stop.set()

    with asking(config) as asked:
        trial = run_pod(asked, NAME, MANIFEST, 60, trials, pause=strikes)
    assert "it had not ended" in trial.left
    assert "9 s" not in trial.left
    assert trials.there == {NAME}


def test_ctrl_c_names_what_may_be_left(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), naming_left({"gpunode-verify-2", "gpunode-verify-1"}):
        raise KeyboardInterrupt
    assert "kubectl delete pod gpunode-verify-1 gpunode-verify-2" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt), naming_left(set()):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_reaches_what_is_at_work(presses: int, capsys: pytest.CaptureFixture[str]) -> None:
    trials, over = Trials(), threading.Event()

    def work(host: Host) -> HostOutcome:
        trials.there.add(NAME)
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)
            trials.stop.wait(60)
        if presses == 2:
            over.wait(60)
        trials.there.discard(NAME)
        return HostOutcome(str(host), ExitCode.DONE)

    options, host = HostOptions(), Host(Recorded(b"", "gpu07"), recorded=True)
    with pytest.raises(KeyboardInterrupt), naming_left(trials.there):
        look_at((host,), options, QuietOptions(), work, stop=trials.stop, left=THROUGH_API)
    err = " ".join(capsys.readouterr().err.split())
    over.set()
    assert f"Ctrl-C again leaves at once: {THROUGH_API}" in err
    assert (f"kubectl delete pod {NAME}" in err) is (presses == 2)


def test_a_log_of_any_form_is_a_few_lines(server: ApiServer, config: Path) -> None:
    Cluster(server, {"phase": "Succeeded"}, log="\x1b[2J\n" * 500)
    assert len(tried(config).log) == 20


def left(name: str, *, phase: str = "Failed", made: str = "2026-01-02T03:04:05Z") -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": made}, "status": {"phase": phase}}


def test_what_a_killed_test_left_is_deleted_and_said(server: ApiServer, config: Path) -> None:
    soon = "2999-01-02T03:04:05Z"  # its maker may be reading it
    pods: list[object] = [left("gpunode-verify-1"), left("gpunode-verify-2", made=soon), left("somebodys"), {}, None]
    pods += [left("gpunode-verify-3", phase="Running"), left("gpunode-verify-4", made="yesterday"), {"metadata": []}]
    Cluster(server, {"phase": "Succeeded"})
    server.answers["GET", PODS] = lambda h: h.say(200, {"items": pods})
    server.answers["DELETE", f"{PODS}/gpunode-verify-1"] = lambda h: h.say(200, {})
    link = pod_link(tried(config))
    assert link.state == "ok"
    assert link.says.endswith("; deleted gpunode-verify-1, left by an earlier test")
    assert [path for verb, path in server.asked if verb == "DELETE"] == [f"{PODS}/gpunode-verify-1", POD]


def test_who_may_not_list_pods_tests_all_the_same(server: ApiServer, config: Path) -> None:
    Cluster(server, {"phase": "Succeeded"})
    server.answers["GET", PODS] = lambda h: h.say(403, status(403, "cannot list"))
    link = pod_link(tried(config))
    assert (link.state, link.says) == ("ok", "Succeeded; its last line: Test PASSED")
