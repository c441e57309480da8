"""gpunode k8s labels: each form is what its reader takes, and says where it does nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from gpunode.cli.app import main
from gpunode.errors import ExitCode

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
NODE, BARE = str(EXAMPLES / "ubuntu2404-node-l40s-ready"), str(EXAMPLES / "ubuntu2404-hgx-h100-ready")


def run(capsys: pytest.CaptureFixture[str], *words: str, host: str = NODE) -> tuple[str, str]:
    assert main(["k8s", "labels", "--recorded", host, *words]) == 0
    return capsys.readouterr()


def test_every_form_has_the_same_labels(capsys: pytest.CaptureFixture[str]) -> None:
    (seen,) = json.loads(run(capsys, "--json")[0])["hosts"]
    labels = seen["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-L40S"
    pairs = [f"{name}={value}" for name, value in labels.items()]
    assert run(capsys, "--form", "nfd")[0].splitlines() == pairs
    assert run(capsys, "--form", "node-labels")[0] == f"--node-labels={','.join(pairs)}\n"
    assert yaml.safe_load(run(capsys, "--form", "patch")[0]) == {"metadata": {"labels": labels}}
    command = shlex.split(run(capsys, "--form", "kubectl", "--node", "gpu07")[0])
    assert command == ["kubectl", "label", "node", "gpu07", "--overwrite", *pairs]


def test_the_flag_says_that_it_changes_nothing_on_a_registered_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert "changes nothing" in run(capsys, "--form", "node-labels")[1]
    fresh = run(capsys, "--form", "node-labels", host=BARE)[1]
    assert "changes nothing" not in fresh
    assert "when its node registers" in fresh


def test_the_old_name_by_the_version_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    name = "alpha.kubernetes.io/nvidia-gpu-name=NVIDIA-L40S"
    assert name in run(capsys, "--form", "node-labels", "--kubernetes", "v1.15.12")[0]
    assert name not in run(capsys, "--form", "node-labels", "--kubernetes", "1.16")[0]
    assert name not in run(capsys, "--form", "nfd", "--kubernetes", "1.15")[0]  # NFD refuses it


@pytest.mark.parametrize("form", ["patch", "kubectl"])
def test_whose_kubeconfig_sets_them_is_said_beforehand(capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert "the kubelet's own" in run(capsys, "--form", form)[1]
    old = " ".join(run(capsys, "--form", form, "--kubernetes", "1.15")[1].split())
    assert (
        "with an administrator's kubeconfig alone: NodeRestriction refuses alpha.kubernetes.io/nvidia-gpu-name" in old
    )
    assert "the kubelet's own" in run(capsys, "--form", form, "--kubernetes", "1.12")[1]  # before it looked at labels
    assert run(capsys, "--form", form, "--kubernetes", "1.15", "--quiet")[1] == ""


def test_a_flag_with_which_this_kubelet_does_not_start_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(run(capsys, "--form", "node-labels", "--kubernetes", "1.15")[1].split())
    assert "does not start with alpha.kubernetes.io/nvidia-gpu-name in --node-labels" in said
    assert "does not start with" not in run(capsys, "--form", "node-labels")[1]


def test_the_page_says_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run(capsys, host=BARE)
    assert "left out" in out
    assert "the device plugin's configuration decides" in out


def test_a_file_is_written_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, _ = run(capsys, "--form", "nfd", "--output", str(tmp_path / "gpunode"))
    assert out == ""
    assert "nvidia.com/gpu.count=2\n" in (tmp_path / "gpunode").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--form", "nfdd"], "did you mean nfd?"),
        (["--form", "nfd", "--json"], "exclude each other"),
        (["--node", "gpu07"], "--node is for --form kubectl and --kubeconfig"),
        (["--form", "nfd", "--kubeconfig", "admin.conf"], "exclude each other"),
        (["--context", "lab"], "--context is for --kubeconfig"),
        (["--yes"], "--yes is for --kubeconfig"),
        (["--kubeconfig", "admin.conf"], "there is no terminal to ask on"),
        (["--form", "kubectl", "--node", "gpu_07"], "is not the name of a node"),
        (["--kubernetes", "new"], "is not a release of Kubernetes"),
        (["--mig-strategy", "all"], "is not a choice"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["k8s", "labels", "--recorded", NODE, *words]) == ExitCode.USAGE
    assert says in " ".join(capsys.readouterr().err.split())


def test_no_file_for_a_host_without_gpus(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    facts = (Path(BARE) / "facts.txt").read_bytes()
    (tmp_path / "facts.txt").write_bytes(facts.replace(b"0x10de", b"0x8086").replace(b"<nvidia_smi_log>", b""))
    assert main(["k8s", "labels", "--recorded", str(tmp_path), "--form", "nfd"]) == ExitCode.UNSUPPORTED
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no NVIDIA GPU" in err
