"""check --recorded of a directory: each recording in it is a host."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
READY, NODE, BARE = "debian12-ready", "ubuntu2404-node-l40s-ready", "el9-a10"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Two recorded hosts as directories, one as a file, and what is none."""
    place = tmp_path / "fleet"
    for slug in (READY, NODE):
        (place / slug).mkdir(parents=True)
        shutil.copy(EXAMPLES / slug / "facts.txt", place / slug)
    shutil.copy(EXAMPLES / BARE / "facts.txt", place / "bare.txt")
    (place / "README.md").write_text("notes")
    (place / "empty").mkdir()
    os.mkfifo(place / "pipe.txt")
    return place


def test_each_recording_in_a_directory_is_a_host(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--recorded", str(fleet), "--json"])
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert [host["target"] for host in hosts] == ["bare", READY, NODE]


def test_a_broken_recording_is_its_own_hosts_fault(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (fleet / READY / "facts.txt").write_text("nonsense")
    main(["check", "--recorded", str(fleet), "--json"])
    hosts = {host["target"]: host for host in json.loads(capsys.readouterr().out)["hosts"]}
    assert "not a whole recording" in hosts[READY]["problem"]
    assert hosts[NODE]["code"] == 0


@pytest.mark.parametrize("place", ["lost.txt", "lost/facts.txt"])
def test_a_recording_that_is_a_link_to_nothing_is_a_host_without_a_report(
    fleet: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (fleet / place).parent.mkdir(exist_ok=True)
    (fleet / place).symlink_to("nowhere")
    main(["check", "--recorded", str(fleet), "--json"])
    hosts = {host["target"]: host for host in json.loads(capsys.readouterr().out)["hosts"]}
    assert len(hosts) == 4
    assert hosts["lost"]["code"] == ExitCode.USAGE
    assert "is not a recorded host" in hosts["lost"]["problem"]


@pytest.mark.parametrize(("form", "named"), [("prometheus", 'host="{}"'), ("junit", 'hostname="{}"')])
def test_a_recording_that_is_called_localhost_is_not_this_machine(
    fleet: Path, form: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (fleet / READY).rename(fleet / "localhost")
    main(["check", "--recorded", str(fleet), "--format", form])
    out = capsys.readouterr().out
    assert all(named.format(name) in out for name in ("bare", "localhost", NODE))


FORGED = "x\nOK  gpu01   all checks pass"


@pytest.mark.parametrize("form", ["text", "jsonl", "prometheus"])
@pytest.mark.parametrize("whole", [True, False], ids=["a recording", "none"])
def test_a_name_of_several_lines_begins_none(
    fleet: Path, form: str, whole: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (fleet / "bare.txt").rename(forged := fleet / f"{FORGED}.txt")
    if not whole:
        forged.write_text("nonsense")
    for words in (["check", "-v"], ["check", "--fix"]) if form == "text" else (["check"],):
        main([*words, "--recorded", str(fleet), "--format", form])
        shown = "".join(capsys.readouterr())
        assert "all checks pass" in shown
        assert not [line for line in shown.splitlines() if line.startswith("OK")]


@pytest.mark.parametrize("words", [["check"], ["plan"], ["detect"], ["setup"], ["runtime", "show"], ["k8s", "labels"]])
def test_nor_where_it_is_the_only_host(fleet: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (fleet / "bare.txt").rename(forged := fleet / f"{FORGED}.txt")
    main([*words, "--recorded", str(forged)])
    shown = "".join(capsys.readouterr())
    assert "all checks pass" in shown
    assert not [line for line in shown.splitlines() if line.startswith("OK")]


def test_two_recordings_of_one_name_are_refused(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(EXAMPLES / BARE / "facts.txt", fleet / f"{READY}.txt")
    assert main(["check", "--recorded", str(fleet)]) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert f"has '{READY}' twice" in said
    assert f"'{READY}' and '{READY}.txt' are recordings of one name" in said


@pytest.mark.parametrize("name", ["gpu-token", "gpu01-pass", "db.secret"])
def test_a_name_that_reads_as_a_secrets_hides_no_result(
    fleet: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (fleet / READY).rename(fleet / name)
    assert main(["check", "--recorded", str(fleet / name)]) == ExitCode.DONE
    assert " checks pass" in capsys.readouterr().out
    (fleet / name / "facts.txt").write_text("nonsense")
    assert main(["check", "--recorded", str(fleet), "--json"]) != ExitCode.DONE
    assert f"gpunode: [{name}] " in (err := " ".join(capsys.readouterr().err.split()))
    assert "is not a whole recording" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--npd"], "--npd takes one host"),
        (["check", "--snapshot", "golden.yaml"], "--snapshot takes one host"),
        (["check", "--inject", "xid=79,gpu=0"], "--inject is for one recording"),
        (["detect"], "is not a recorded host"),
        (["plan"], "is not a recorded host"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_takes_one_host_says_so(
    fleet: Path,
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--recorded", str(fleet)]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert said in " ".join((out + err).split())
    assert not (tmp_path / "golden.yaml").exists()


def test_a_directory_without_a_recording_is_refused_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--recorded", str(tmp_path)]) == ExitCode.USAGE
    assert "is not a recorded host" in " ".join(capsys.readouterr().err.split())
