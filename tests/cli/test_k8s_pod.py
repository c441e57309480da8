"""gpunode k8s pod: what is typed is in the pod, a host decides where one is named, and nothing is ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpunode.cli.app import main
from gpunode.errors import ExitCode

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
READY = ["--recorded", str(EXAMPLES / "ubuntu2404-hgx-h100-ready")]
NO_DRIVER = ["--recorded", str(EXAMPLES / "debian11-k80-470")]


def pods(capsys: pytest.CaptureFixture[str], *words: str) -> list[Any]:
    assert main(["k8s", "pod", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_no_host_is_asked_unless_one_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpunode.cli.hosts.open_hosts", None)
    (pod,) = pods(capsys, "--gpus", "2")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 2}


def test_three_objects_for_dra(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [one["kind"] for one in pods(capsys, "--mode", "dra", "--kubernetes", "1.34.2")]
    assert kinds == ["DeviceClass", "ResourceClaimTemplate", "Pod"]


def test_an_old_pod_has_the_paths_of_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    (pod,) = pods(capsys, "--kubernetes", "1.7", *READY)
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"alpha.kubernetes.io/nvidia-gpu": 1}
    assert next(one["hostPath"]["path"] for one in pod["spec"]["volumes"]).startswith("/usr/lib")


def test_a_host_without_a_driver_has_no_paths(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["k8s", "pod", "--kubernetes", "1.7", *NO_DRIVER]) == ExitCode.UNSUPPORTED
    assert "not known" in capsys.readouterr().err


def test_the_drivers_branch_decides_on_the_image(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "cuda12" in pods(capsys, *READY)[0]["spec"]["containers"][0]["image"]
    facts = (Path(READY[1]) / "facts.txt").read_bytes().replace(b"595.91.07", b"470.256.02")
    (tmp_path / "facts.txt").write_bytes(facts)
    (pod,) = pods(capsys, "--recorded", str(tmp_path))
    assert "cuda11" in pod["spec"]["containers"][0]["image"]
    (pod,) = pods(capsys, "--recorded", str(tmp_path), "--image", "mirror.example:5000/x:1")
    assert pod["spec"]["containers"][0]["image"] == "mirror.example:5000/x:1"


@pytest.mark.parametrize("words", [(), ("--mode", "dra"), ("--kubernetes", "1.7"), ("--visible-devices", "all")])
def test_a_pod_runs_on_the_node_of_the_host_that_was_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    facts = (EXAMPLES / "ubuntu2404-node-l40s-ready" / "facts.txt").read_bytes()
    ready = b"|condition=Ready True KubeletReady\n"
    assert facts.count(ready) == 1
    (tmp_path / "facts.txt").write_bytes(facts.replace(ready, ready + b"|label=kubernetes.io/hostname gpu07\n"))
    assert main(["k8s", "pod", "--recorded", str(tmp_path), *words]) == 0
    out, err = capsys.readouterr()
    assert list(yaml.safe_load_all(out))[-1]["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "gpu07"}
    assert "any node" not in err
    assert "kubectl delete pod gpunode-vector-add first" in out


@pytest.mark.parametrize("label", [b"", b"|label=kubernetes.io/hostname a b\n", b"|label=kubernetes.io/hostname \n"])
def test_a_node_whose_label_is_not_known_is_not_guessed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, label: bytes
) -> None:
    facts = (EXAMPLES / "ubuntu2404-node-l40s-ready" / "facts.txt").read_bytes()
    ready = b"|condition=Ready True KubeletReady\n"
    (tmp_path / "facts.txt").write_bytes(facts.replace(ready, ready + label))
    assert main(["k8s", "pod", "--recorded", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "nodeSelector" not in out
    assert "any node may run this pod" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpus", "0.5"], "whole GPUs"),
        (["--gpus", "1", "--visible-devices", "all"], "exclude each other"),
        (["--mode", "dra", "--runtime-class", "nvidia"], "is not for --mode dra"),
        (["--kubernetes", "1.7", "--resource", "nvidia.com/gpu"], "is not for --mode alpha"),
        (["--resource", "alpha.kubernetes.io/nvidia-gpu"], "waits for ever"),
        (["--resource", "amd.com/gpu"], "is not a resource of NVIDIA's"),
        (["--mode", "mps"], "is not a choice"),
        (["--runtime-class", "NVIDIA"], "is not the name of an object"),
        (["--kubernetes", "1.12", "--runtime-class", "nvidia"], "has no RuntimeClass"),
        (["--image", "a b"], "is not an image"),
        (["--kubernetes", "2.0"], "is not a release of Kubernetes"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["k8s", "pod", *words]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert says in " ".join(err.split())
