"""`check --recorded HOST --inject WHAT`: what an alarm would look like, end to end, with nothing broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode

HOSTS = Path(__file__).parents[2] / "examples" / "hosts"
WELL = "ubuntu2404-driver610-l40s"


def findings(capsys: pytest.CaptureFixture[str], host: str, *inject: str) -> dict[str, dict[str, object]]:
    words = [word for one in inject for word in ("--inject", one)]
    main(["check", "--recorded", str(HOSTS / host), "--json", *words])
    checks = json.loads(capsys.readouterr().out)["hosts"][0]["checks"]
    return {one["id"]: one for one in checks if one["outcome"] == "finding"}


@pytest.mark.parametrize(
    ("inject", "id", "says"),
    [
        ("xid=79,gpu=3", "pci.fallen-off-bus", "0000:1c:00.0 has fallen off the bus"),
        ("xid=95,gpu=0000:1a:00.0", "health.xid-recent", "0000:1a:00.0 met Xid 95: "),
        ("xid=13", "health.xid-recent", "a program on 0000:19:00.0 met Xid 13: "),
        ("xid=154,gpu=1", "health.xid-extended", "0000:1a:00.0 met Xid 154: the driver says what it needs: Reset"),
        ("xid=149,gpu=2", "health.xid-extended", "0000:1b:00.0 met Xid 149: NVLink 0 failed"),
        ("aer=fatal,gpu=1", "pci.aer-errors", "PCIe reports errors of 0000:1a:00.0"),
        ("hang", "health.hang-detector", "1 task waited for minutes inside the NVIDIA driver"),
        ("mce", "health.mce", "the host's hardware reports errors"),
    ],
)
def test_an_alarm_looks_as_it_would(inject: str, id: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = findings(capsys, WELL), findings(capsys, WELL, inject)
    assert set(after) - set(before) == {id}
    assert str(after[id]["summary"]).startswith(says)


def test_a_switch_of_an_hgx_board(capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys, "ubuntu2204-hgx-a100", "sxid=20034,switch=1")
    assert "met SXid 20034, fatal" in str(found["health.sxid"]["summary"])


def test_several_at_once_and_the_recording_stays_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    file = HOSTS / WELL / "facts.txt"
    before = file.read_bytes()
    found = findings(capsys, WELL, "xid=95,gpu=0", "xid=119,gpu=1")
    assert str(found["health.xid-recent"]["summary"]).count("met Xid") == 2
    assert file.read_bytes() == before


def test_a_monitor_gets_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--recorded", str(HOSTS / WELL), "--npd", "--inject", "xid=79,gpu=0"]) == 1
    assert "pci.fallen-off-bus" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--inject", "xid=79"], "--inject is for a recording"),
        (["--ssh", "gpu01", "--inject", "xid=79"], "--inject is for a recording"),
        (["--recorded", WELL, "--inject", "xid=79,gpu=4"], "the recording has 0 (0000:19:00.0), 1 "),
        (["--recorded", WELL, "--inject", "xid=79,gpu=-1"], "the recording has"),
        (["--recorded", WELL, "--inject", "xid=0"], "a number from 1"),
        (["--recorded", WELL, "--inject", "xid=" + "9" * 5000], "a number from 1"),
        (["--recorded", WELL, "--inject", "xids=79"], "did you mean xid?"),
        (["--recorded", WELL, "--inject", "xid=79,switch=1"], "it can be xid=CODE,gpu=N"),
        (["--recorded", WELL, "--inject", "sxid=20034"], "the recording has none"),
        (["--recorded", WELL, "--inject", "aer=some"], "it is one of corrected, nonfatal, fatal"),
        (["--recorded", WELL, "--inject", ""], "it can be"),
        (["--list", "--inject", "xid=79"], "is for a check of hosts"),
    ],
    ids=lambda value: None if isinstance(value, list) else value,
)
def test_what_cannot_be_injected_is_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HOSTS)
    assert main(["check", *words]) == ExitCode.USAGE
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_recording_without_a_kernel_log_would_not_show_it_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (HOSTS / WELL / "facts.txt").read_text().replace("@ kernel_log rc=0", "@ kernel_log rc=127")
    (tmp_path / "facts.txt").write_text(text)
    assert main(["check", "--recorded", str(tmp_path), "--inject", "xid=79"]) == ExitCode.USAGE
    assert "needs a recording with a kernel log" in capsys.readouterr().err
