"""gpunode k8s device-plugin: the result on stdout, what is to be known on stderr, faults as exit code 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from gpunode.cli.app import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["k8s", "device-plugin", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_manifest_goes_to_stdout_and_notes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--plugin-version", "0.19.0")
    assert (code, yaml.safe_load(out)["kind"]) == (0, "DaemonSet")
    assert err.startswith("gpunode: v0.19.0 switches gds-enabled, mofed-enabled, gdrcopy-enabled on by itself")


def test_a_manifest_may_go_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "--output", str(tmp_path / "plugin.yaml"))
    assert (code, out, err) == (0, "", "")
    assert yaml.safe_load((tmp_path / "plugin.yaml").read_text())["kind"] == "DaemonSet"


def test_a_config_file_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("version: v1\nflags: {migStrategy: mixed}\n")
    code, out, _ = run(capsys, "--config", str(config), "--form", "helm", "--set", "gds-enabled=true")
    assert code == 0
    values = yaml.safe_load(out)
    assert (values["migStrategy"], values["gdsEnabled"]) == ("mixed", True)


def test_a_group_has_a_file_of_its_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("")
    code, out, err = run(capsys, "--config", f"a={config}", "--config", f"b={config}", "--form", "configmap")
    assert code == 0
    assert list(yaml.safe_load(out)["data"]) == ["a", "b"]
    assert "nvidia.com/device-plugin.config" in err


@pytest.mark.parametrize(
    "words",
    [
        ("--form", "x"),
        ("--set", "x"),
        ("--spelling", "flag", "--form", "helm"),
        ("--kubernetes", "1.7"),
        ("--runtime-class", "A B"),
        ("--config", "/nonexistent"),
        ("--config", "/dev/null/x"),
        ("--config", "a=/nonexistent"),
        ("--plugin-version", "latest"),
        ("--config", "/proc/self/mem"),
    ],
)
def test_faults_are_exit_code_2_and_print_no_manifest(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("gpunode: ")
    assert "Traceback" not in err


def test_a_recorded_host_is_held_against_it(capsys: pytest.CaptureFixture[str]) -> None:
    recorded = ("--recorded", "examples/hosts/ubuntu2204-rke2-a30")
    code, out, err = run(
        capsys, *recorded, "--set", "device-list-strategy=cdi-cri,envvar", "--set", "mig-strategy=mixed"
    )
    assert code in (0, 4)
    assert bool(out) is (code == 0)
    assert "Traceback" not in err


def test_a_large_file_and_a_pipe_nobody_writes_to_are_no_trap(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "large").write_bytes(b"#" * 200_000)
    assert run(capsys, "--config", str(tmp_path / "large"))[0] == 2
    os.mkfifo(tmp_path / "pipe")
    assert run(capsys, "--config", str(tmp_path / "pipe"))[0] == 0
    (tmp_path / "bytes").write_bytes(b"flags: {migStrategy: \xff}")
    assert run(capsys, "--config", str(tmp_path / "bytes"))[0] == 2
