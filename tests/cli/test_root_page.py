"""The page of `gpunode --help` that is written down is the one that click makes of the verbs.

GPUNODE_UPDATE_GOLDEN=1 rewrites it; the reviewer reads the diff.
"""

from __future__ import annotations

import os
import pty
import shutil
import struct
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.cli.commands import run_words
from gpunode.cli.start import root_page as written
from gpunode.resources import PACKAGE


@pytest.mark.parametrize("columns", [*written.WIDTHS, 101, 250])
def test_the_written_page_is_clicks(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run_words(["--help"]) == 0
    clicks = capsys.readouterr().out
    if os.environ.get("GPUNODE_UPDATE_GOLDEN"):
        (Path(PACKAGE) / written.page_file(min(columns, written.MOST))).write_text(clicks, encoding="utf-8")
    assert written.root_page(["--help"]) == clicks, "GPUNODE_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("columns", [40, 79, 80, 81, 99, 100, 120])
@pytest.mark.parametrize("words", written.WORDS, ids=" ".join)
def test_at_any_width_the_page_is_clicks(
    words: list[str], columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run_words(words) == 0
    clicks = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out == clicks


@pytest.mark.parametrize("words", [["check", "--help"], ["--help", "check"], ["--version"], ["check"]], ids=" ".join)
def test_other_words_have_no_written_page(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert written.root_page(words) is None


def test_a_shell_that_completes_gets_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv(written.COMPLETES, "complete_bash")
    assert written.root_page([]) is None


@pytest.mark.parametrize("columns", ["", "0", "-1", "x", "80", "100", "133"])
def test_the_width_is_the_one_that_click_asks_for(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert written._columns() == shutil.get_terminal_size().columns


@pytest.mark.parametrize("columns", [0, 72, 80, 200])
def test_the_width_of_a_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says 0 does not know."""
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(theirs, "w") as terminal:
        monkeypatch.setattr("sys.__stdout__", terminal)
        assert written._columns() == shutil.get_terminal_size().columns == (columns or 80)
    os.close(ours)
