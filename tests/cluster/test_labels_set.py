"""gpunode k8s labels --kubeconfig, as it is typed: what changes on the node, what is asked first, whose labels stay."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cluster.node import ANNOTATION
from gpunode.errors import ExitCode
from tests.cluster.api_server import NODE, TOKEN, ApiServer, Authority, Handler, kubeconfig, status

SAMPLE = Path(__file__).parents[2] / "examples" / "hosts" / "ubuntu2404-node-l40s-ready"
COUNT, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.product"


def run(config: Path, *words: str, node: str = "gpu07") -> int:
    words = ("--kubeconfig", str(config), *(("--node", node) if node else ()), *words)
    return main(["k8s", "labels", "--recorded", str(SAMPLE), *words])


def ours(server: ApiServer) -> dict[str, str]:
    found: dict[str, str] = json.loads(server.node["metadata"]["annotations"].get(ANNOTATION, "{}"))
    return found


def test_labels_are_set_once_and_nobody_elses_are_touched(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.labels["nvidia.com/gpu.family"] = "of-somebody"
    assert run(config, "--yes") == 0
    out, err = capsys.readouterr()
    assert server.labels[PRODUCT] == "NVIDIA-L40S"
    assert (server.labels["team"], server.labels["nvidia.com/gpu.family"]) == ("ml", "of-somebody")
    assert f"+ {PRODUCT}" in err
    assert "somebody else set it to 'of-somebody'; the facts say 'ada-lovelace'" in " ".join(err.split())
    assert f"node gpu07: {len(ours(server))} labels changed" in out
    assert set(ours(server)) == {n for n in server.labels if n.startswith("nvidia.com/")} - {"nvidia.com/gpu.family"}
    assert run(config, "--yes") == 0
    assert "no changes" in capsys.readouterr().out
    assert len(server.patches) == 1
    assert TOKEN not in out + err


def test_what_no_longer_holds_goes_and_what_somebody_changed_stays(server: ApiServer, config: Path) -> None:
    before = {COUNT: "9", "nvidia.com/mig.strategy": "single", "nvidia.com/mig-1g.10gb.count": "7", "team": "ml"}
    server.labels.update(before | {"nvidia.com/mig-1g.10gb.count": "8"})
    server.node["metadata"]["annotations"][ANNOTATION] = json.dumps(before)
    assert run(config, "--yes") == 0
    assert server.labels[COUNT] == "2"
    assert "nvidia.com/mig.strategy" not in server.labels
    assert server.labels["nvidia.com/mig-1g.10gb.count"] == "8"
    assert server.labels["team"] == "ml"  # whatever the annotation says of it
    assert "team" not in ours(server)


@pytest.mark.parametrize("text", ["[]", "{", '{"nvidia.com/gpu.count": 9}', "x" * 1000, "[" * 1000])
def test_an_annotation_of_any_form_takes_nothing_away(server: ApiServer, config: Path, text: str) -> None:
    server.labels[COUNT] = "9"
    server.node["metadata"]["annotations"][ANNOTATION] = text
    assert run(config, "--yes") == 0
    assert server.labels[COUNT] == "9"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "patches"), [("y\n", 0, 1), ("n\n", 1, 0), ("", 1, 0)])
def test_it_asks_before_it_changes(
    server: ApiServer, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    answer: str, code: int, patches: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert run(config) == code
    err = capsys.readouterr().err
    assert f"+ {PRODUCT}" in err.partition("Change ")[0]
    assert "labels? [y/N]" in err
    assert ("nothing was changed" in err) is (code == 1)
    assert len(server.patches) == patches


def test_a_no_is_a_result_for_programs(
    server: ApiServer, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert run(config, "--json") == 1
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (host["code"], host["changed"]) == (1, False)
    assert host["problem"] == "not begun: the question was answered with no"
    assert not server.patches


def test_a_node_that_changes_meanwhile_is_read_again(server: ApiServer, config: Path) -> None:
    """Its kubelet writes to it every few seconds."""
    meta = server.node["metadata"]

    def beats() -> None:
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        server.before_patch = lambda: None

    server.before_patch = beats
    assert run(config, "--yes") == 0
    assert server.labels[PRODUCT] == "NVIDIA-L40S"
    assert [verb for verb, _ in server.asked] == ["GET", "PATCH", "GET", "PATCH"]


def test_a_label_that_somebody_sets_meanwhile_is_not_overwritten(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = server.node["metadata"]

    def sets() -> None:
        server.labels[PRODUCT] = "of-somebody"
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)

    server.before_patch = sets
    assert run(config, "--yes") == ExitCode.DRIFT
    assert server.patches == []
    assert "no longer those that were shown" in capsys.readouterr().err


@pytest.mark.parametrize(("made", "code"), [(True, 0), (False, ExitCode.UNREACHABLE)])
def test_a_change_whose_answer_is_lost_is_looked_for(
    server: ApiServer, config: Path, made: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(handler: Handler) -> None:
        if made:
            handler.patch(handler.body)
        handler.close_connection = True

    server.answers["PATCH", NODE] = lost
    assert run(config, "--yes") == code
    assert ("labels changed" in capsys.readouterr().out) is made


def test_what_another_gpunode_says_is_ours_meanwhile_is_kept(server: ApiServer, config: Path) -> None:
    meta = server.node["metadata"]
    server.labels[COUNT] = "2"  # as the facts say, and nobody knows whose

    def claims() -> None:
        meta["annotations"][ANNOTATION] = json.dumps({COUNT: "2"})
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        server.before_patch = lambda: None

    server.before_patch = claims
    assert run(config, "--yes") == 0
    assert ours(server)[COUNT] == "2"


def test_a_node_that_changes_for_ever_is_given_up(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = server.node["metadata"]

    def beats() -> None:
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)

    server.before_patch = beats
    assert run(config, "--yes") == ExitCode.DRIFT
    err = " ".join(capsys.readouterr().err.split())
    assert "5 times in a row; the labels themselves are still those that were shown" in err


def test_a_change_that_the_cluster_undoes_is_no_success(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers["PATCH", NODE] = lambda h: h.say(200, server.node)
    assert run(config, "--yes") == ExitCode.FAILED
    out, err = capsys.readouterr()
    assert "does not have what the server took" in " ".join(err.split())
    assert "changed" not in out


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_says_what_was_changed(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    server.labels["nvidia.com/gpu.family"] = "of-somebody"
    assert run(config, "--yes", "--format", form) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["schema"] == "gpunode.k8s-labels-set/1"
    (host,) = out["hosts"] if form == "json" else (out,)
    assert (host["code"], host["node"], host["changed"]) == (0, "gpu07", True)
    assert {"name": COUNT, "before": None, "after": "2"} in host["changes"]
    assert list(host["unchanged"]) == ["nvidia.com/gpu.family"]


def test_a_refusal_is_the_hosts_and_the_code_says_so(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers["PATCH", NODE] = lambda h: h.say(403, status(403, 'nodes "gpu07" is forbidden: no rights'))
    assert run(config, "--yes", "--json") == ExitCode.UNREACHABLE
    out, err = capsys.readouterr()
    (host,) = json.loads(out)["hosts"]
    assert (host["code"], host["changed"]) == (3, False)
    assert 'nodes "gpu07" is forbidden: no rights' in host["evidence"]
    assert "name the kubeconfig of somebody who may" in err


def test_the_node_of_another_machine_is_not_labelled(
    server: ApiServer, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that was not typed is the host's: another cluster may have a node called so."""
    server.node["status"]["nodeInfo"]["kernelVersion"] = "5.15.0-1-other"
    server.answers["GET", f"/api/v1/nodes/{SAMPLE.name}"] = lambda h: h.say(200, server.node)
    assert run(config, "--yes", node="") == ExitCode.UNSUPPORTED
    assert "is not this host, by its kernel" in " ".join(capsys.readouterr().err.split())
    assert server.patches == []
    assert run(config, "--yes") == 0  # --node says that it is


def test_a_nodes_identity_is_told_what_it_may_not(
    server: ApiServer, authority: Authority, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate, key = authority.certify("system:node:gpu07", "system:nodes")
    (place / "client.pem").write_text(certificate + key)
    user = {"client-certificate": "client.pem", "client-key": "client.pem"}
    config = kubeconfig(place, server.address, authority.pem, user)
    assert run(config, "--yes", "--kubernetes", "1.15") == 0
    assert "NodeRestriction refuses it to the node's own identity" in " ".join(capsys.readouterr().err.split())
    assert "alpha.kubernetes.io/nvidia-gpu-name" not in server.labels
    assert server.labels[PRODUCT] == "NVIDIA-L40S"
    before = len(server.asked)
    assert run(config, "--yes", node="gpu08") == ExitCode.UNSUPPORTED
    assert "NodeRestriction lets a node change itself alone" in " ".join(capsys.readouterr().err.split())
    assert len(server.asked) == before  # the server did not have to say it


def test_insecure_is_announced(server: ApiServer, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = kubeconfig(place, server.address, None, {"token": TOKEN}, **{"insecure-skip-tls-verify": True})
    assert run(config, "--yes") == 0
    err = capsys.readouterr().err
    assert f"insecure-skip-tls-verify: whoever answers at {server.address} is believed" in err
    assert TOKEN not in err
