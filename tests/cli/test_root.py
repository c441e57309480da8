"""setup and undo need root: who cannot become root is refused before a plan is shown and a question asked."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode
from tests.transport.sudo import neither, stand_in


class Terminal(io.StringIO):
    """On which nobody agrees to anything."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def ann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who is not root, at a terminal, with a PATH of their own."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("sys.stdin", Terminal())
    return tmp_path


@pytest.mark.parametrize("argv", [["setup", "--allow-no-gpu", "--only", "toolkit"], ["undo"], ["undo", "--dry-run"]])
@pytest.mark.parametrize(
    ("password", "why"), [(True, "sudo needs a password"), (False, "the host has no sudo and no doas")]
)
def test_without_root_nothing_is_planned(
    ann: Path,
    argv: list[str],
    password: bool,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(stand_in(ann, "sudo") if password else neither(ann)))
    assert main(argv) == ExitCode.UNREACHABLE
    out, err = capsys.readouterr()
    assert f"root is needed here: {why}" in " ".join(err.split())
    assert "Apply" not in err
    assert "step" not in out + err


def test_what_only_looks_goes_on_without_root(ann: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect"]) == ExitCode.DONE
    assert "root is needed" not in capsys.readouterr().err
