"""check --unit: units that systemd takes, and that run what was typed."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpunode.cli.app import main

ME = [f'"{sys.executable}"', '"-m"', '"gpunode"', '"check"']


def unit(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["check", *words]) == 0
    return capsys.readouterr().out


def section(text: str, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys of units have capitals
    parser.read_string(text)
    return dict(parser[name])


@pytest.fixture(autouse=True)
def _as_a_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["gpunode/__main__.py"])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ([], []),
        (["--strict"], ["--strict"]),
        (["--expect-gpus", "8", "-q"], ["--expect-gpus", "8", "--quiet"]),
        (["--spec", "node.yaml"], ["--spec", "{here}/node.yaml"]),
        (["--ssh", "root@g1:22,root@g2:22"], ["--ssh", "root@g1:22,root@g2:22"]),
        (["--format", "prometheus", "--output", "a b%h$X.prom"], None),
        (["-v", "-v", "--ssh", "h1", "--identity", "key", "--ssh", "h2"], None),
    ],
    ids=["nothing", "strict", "wanted", "a path", "hosts with ports", "signs of systemd's own", "repeated"],
)
def test_the_service_runs_what_was_typed(
    words: list[str], run: list[str] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    special = {
        "--format": ["--format", "prometheus", "--output", f"{tmp_path}/a b%%h$$X.prom"],
        "-v": ["--ssh", "h1", "--ssh", "h2", "--identity", f"{tmp_path}/key", "-v", "-v"],
    }
    want = [word.format(here=tmp_path) for word in run] if run is not None else special[words[0]]
    service = section(unit([*words, "--unit", "service"], capsys), "Service")
    assert service["ExecStart"] == " ".join([*ME, *(f'"{word}"' for word in want)])
    assert service["Type"] == "oneshot"


def test_the_timer_starts_it_again_after_each_end(capsys: pytest.CaptureFixture[str]) -> None:
    text = unit(["--unit", "timer"], capsys)
    assert section(text, "Timer")["OnUnitInactiveSec"] == "15min"
    assert section(text, "Install") == {"WantedBy": "timers.target"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_in_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("service", "timer"):
        (tmp_path / f"gpunode-check.{kind}").write_text(unit(["--unit", kind, "--output", "a b.txt"], capsys))
    units = [str(tmp_path / f"gpunode-check.{kind}") for kind in ("service", "timer")]
    told = subprocess.run(("systemd-analyze", "verify", *units), capture_output=True, text=True, check=False)
    assert (told.returncode, [line for line in told.stderr.splitlines() if "gpunode-check" in line]) == (0, [])
