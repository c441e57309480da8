"""gpunode k8s preflight, typed: its codes, what it refuses, its JSON, and two hosts at once."""

from __future__ import annotations

import json

import pytest

from gpunode.cli import hosts as hosts_of_cli
from gpunode.cli.app import main
from gpunode.errors import ExitCode
from gpunode.facts.recordings import load_recording
from gpunode.fleet.host import Host
from gpunode.transport.base import NotReached
from tests.cli.test_check_fleet import Faked
from tests.golden_text import EXAMPLES

GATE, TODAY = "ubuntu2204-kubelet130-l4", "ubuntu2404-kubelet137-h200"


def typed(*words: str) -> list[str]:
    return ["k8s", "preflight", *words]


def recorded(slug: str) -> str:
    return str(EXAMPLES / slug)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], ExitCode.USAGE, "k8s preflight needs --to"),
        (["--to", "soon"], ExitCode.USAGE, "--to 'soon' is not a release of Kubernetes"),
        (["--to", "2.0"], ExitCode.USAGE, "--to '2.0' is not a release of Kubernetes"),
        (["--to", "1.99"], ExitCode.USAGE, "the newest that is in its tables is 1.38"),
        (["--to", "1.29"], ExitCode.UNSUPPORTED, "kubelet 1.30.14 is newer than 1.29"),
        (["--to", "1.30"], ExitCode.DONE, ""),
    ],
    ids=["no release", "no number", "another major", "not known", "older", "the one that it is"],
)
def test_what_is_typed(words: list[str], code: ExitCode, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed(*words, "--recorded", recorded(GATE))) == code
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_host_without_a_kubelet_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed("--to", "1.37", "--recorded", recorded("debian12-l4"))) == ExitCode.UNSUPPORTED
    out, err = capsys.readouterr()
    assert out == ""
    assert "no kubelet: Kubernetes is not on this host" in err


def test_json_has_every_effect_with_its_release_source_and_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed("--to", "v1.35.2", "--json", "--recorded", recorded(GATE))) == ExitCode.FAILED
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == "gpunode.k8s-preflight/1"
    (host,) = said["hosts"]
    assert (host["code"], host["to"], host["kubelet"]) == (1, "1.35", {"name": "kubelet", "version": "1.30.14"})
    stops = {one["kind"]: one for one in host["effects"] if one["state"] == "stops"}
    assert stops["feature-gate"] == {
        "state": "stops",
        "kind": "feature-gate",
        "since": "1.33",
        "summary": "kubelet 1.35 does not start with the feature gate CPUManager",
        "evidence": "/var/lib/kubelet/config.yaml:5 has CPUManager=true; CPUManager is not known from 1.33 on",
        "action": "configure",
        "remedy": "take CPUManager out of /var/lib/kubelet/config.yaml before the upgrade; gpunode setup --only "
        "kubernetes does that once kubelet is 1.33 or later",
        "source": "kubernetes/kubernetes#129296",
    }
    assert stops["flag"]["since"] == "1.35"
    assert all(one["text"] for one in host["notes"])


def fleet(*hosts: Faked, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(hosts_of_cli, "_hosts", lambda options, *, as_root: tuple(map(Host, hosts)))
    return ",".join(one.target for one in hosts)


def test_two_nodes_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = fleet(
        Faked("gpu01", load_recording(EXAMPLES / GATE)),
        Faked("gpu02", load_recording(EXAMPLES / TODAY)),
        monkeypatch=monkeypatch,
    )
    assert main(typed("--to", "1.37", "--ssh", names, "--format", "jsonl")) == ExitCode.FAILED
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["target"] for line in lines] == ["gpu01", "gpu02"]
    assert [sum(one["state"] == "stops" for one in line["effects"]) for line in lines] == [2, 0]
    assert main(typed("--to", "1.37", "--ssh", names)) == ExitCode.FAILED
    out = " ".join(capsys.readouterr().out.split())
    assert "gpu01 kubelet 1.30.14 to 1.37: 2 things stop it" in out
    assert "gpu02 kubelet 1.37.0 to 1.37: nothing on this node stops or changes it" in out
    assert "gpunode setup --ssh gpu01 --only kubernetes" in out


def test_a_node_that_is_not_reached_keeps_no_other_from_being_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = NotReached("gpu02: no route", evidence="it did not answer", remedy="look at it")
    names = fleet(Faked("gpu01", load_recording(EXAMPLES / TODAY)), Faked("gpu02", error=lost), monkeypatch=monkeypatch)
    assert main(typed("--to", "1.37", "--ssh", names, "--json")) == ExitCode.UNREACHABLE
    first, second = json.loads(capsys.readouterr().out)["hosts"]
    assert "effects" in first
    assert (second["code"], second["problem"]) == (3, "gpu02: no route")
