"""check --bundle FILE: of a recording what it holds, and the check's own exit code."""

from __future__ import annotations

import getpass
import tarfile
from pathlib import Path

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode
from gpunode.offline.bundle import ROOT
from tests.transport.sshd import SSHD, Sshd

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
Captured = pytest.CaptureFixture[str]


def texts(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        return {m.name.removeprefix(f"{ROOT}/"): tar.extractfile(m).read().decode() for m in tar}  # type: ignore[union-attr]


def test_a_recordings_bundle_holds_what_it_has_and_says_what_it_has_not(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "b.tgz"
    code = main(["check", "--bundle", str(path), "--recorded", str(EXAMPLES / "debian12-ready")])
    said = capsys.readouterr()
    assert code == ExitCode.DONE
    assert "checks pass" in said.out
    assert f"{path} has 4 files and a MANIFEST; read them before you send it" in " ".join(said.err.split())
    files = texts(path)
    here = "01-debian12-ready"
    assert set(files) == {
        "MANIFEST",
        *(f"{here}/{n}" for n in ("facts.txt", "report.txt", "report.json", "journal.jsonl")),
    }
    assert f"{here}/units: a recording has no logs" in files["MANIFEST"]
    assert "gpunode.check-result/2" in files[f"{here}/report.json"]
    assert "pass" in files[f"{here}/report.txt"]
    (tmp_path / "facts.txt").write_text(files[f"{here}/facts.txt"])
    assert main(["check", "--recorded", str(tmp_path / "facts.txt"), "-q"]) == ExitCode.DONE


def test_a_failing_host_has_a_bundle_and_the_checks_code(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "b.tgz"
    code = main(["check", "--bundle", str(path), "--recorded", str(EXAMPLES / "debian12-err-a100"), "-q"])
    assert code == ExitCode.FAILED
    files = texts(path)
    assert "FAIL" in files["01-debian12-err-a100/report.txt"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words", [["--npd"], ["--fix"], ["--list"], ["--watch", "5"]], ids=["npd", "fix", "list", "watch"]
)
def test_a_bundle_is_one_mode_of_several(words: list[str], tmp_path: Path, capsys: Captured) -> None:
    assert main(["check", "--bundle", str(tmp_path / "b"), *words]) == ExitCode.USAGE
    assert "exclude each other" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_place_that_cannot_be_written_is_refused_before_a_host_is_asked(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "link").symlink_to("x")
    words = ["check", "--bundle", str(tmp_path / "link"), "--recorded", str(tmp_path / "no-such-host")]
    assert main(words) == ExitCode.USAGE
    assert "symbolic link" in capsys.readouterr().err


@pytest.mark.skipif(SSHD is None, reason="sshd is not installed (openssh-server)")
def test_over_ssh_it_has_what_the_host_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "sshd").mkdir()
    server = Sshd(tmp_path / "sshd").start()
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {server.host_key}\n")
    path, there = tmp_path / "b.tgz", f"{getpass.getuser()}@127.0.0.1:{server.port}"
    try:
        code = main(["check", "--bundle", str(path), "--ssh", there, "--identity", str(server.identity)])
    finally:
        server.stop()
    said = capsys.readouterr()
    assert code in (ExitCode.DONE, ExitCode.FAILED), said.err
    assert f"{path} has " in " ".join(said.err.split())
    (here,) = {name.partition("/")[0] for name in texts(path)} - {"MANIFEST"}
    files = texts(path)
    assert {f"{here}/facts.txt", f"{here}/report.txt", f"{here}/report.json"} <= set(files)
    assert "fleet.hostkey" in files[f"{here}/report.json"]
    assert "a recording has no logs" not in files["MANIFEST"]
    (tmp_path / "facts.txt").write_text(files[f"{here}/facts.txt"])
    assert main(["check", "--recorded", str(tmp_path / "facts.txt"), "-q"]) == code
