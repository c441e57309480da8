"""gpunode bundle and --bundle, as they are typed (made of: tests/bundles; with real apt: tests/lab/test_bundle.py)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from gpunode.cli.app import main
from tests.bundles.test_archive import FILES, bundle, tar

HOST = str(Path(__file__).parents[2] / "examples" / "hosts" / "debian12-l4")
UNENDING = {**FILES, "vendor/a/InRelease": b"Origin: NVIDIA\nDate: Thu, 26 Nov 2026 10:00:00 UTC\n"}
CREATE = ["bundle", "create", "--target", "debian-12/595", "--output"]


@pytest.fixture
def gpu_bundle(tmp_path: Path) -> Path:
    return bundle(tmp_path, UNENDING)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    return " ".join((out + err).split())


def test_verify_says_what_is_in_it(gpu_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "verify", str(gpu_bundle)]) == 0
    text = said(capsys)
    assert "for debian-12/595 on x86_64" in text
    assert "packages 1, indexes as of 2026-11-26T10:00:00Z, which do not end" in text


def test_verify_refuses_what_was_changed(gpu_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = gpu_bundle.read_bytes()
    gpu_bundle.write_bytes(whole.replace(b"debdeb", b"debdeB", 1))
    assert main(["bundle", "verify", str(gpu_bundle)]) == 2
    assert "was changed after it was made: vendor/a/nvidia-open_595.91.07-1_amd64.deb" in said(capsys)
    assert main(["plan", "--recorded", HOST, "--bundle", str(gpu_bundle)]) == 2
    assert "was changed after it was made" in said(capsys)


def test_an_index_that_has_ended_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = b"Date: Thu, 26 Nov 2020 10:00:00 UTC\nValid-Until: Thu, 03 Dec 2020 10:00:00 UTC\n"
    path = bundle(tmp_path, {**FILES, "vendor/a/InRelease": ended})
    assert main(["bundle", "verify", str(path)]) == 1
    assert "too old: its signed index vendor/a/InRelease was valid until 2020-12-03T10:00:00Z" in said(capsys)


def test_what_stands_in_it_reaches_no_terminal_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    member = tarfile.TarInfo("gpunode-bundle/\x1b[31mred")
    path = tar(tmp_path / "b", (member, b""))
    assert main(["bundle", "verify", str(path)]) == 2
    assert "\x1b" not in said(capsys)


def test_diff_ends_with_1_where_they_differ(
    gpu_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    other = bundle(tmp_path / "other", {**UNENDING, next(reversed(FILES)): b"other" * 420})
    assert main(["bundle", "diff", str(gpu_bundle), str(gpu_bundle)]) == 0
    assert "both have the same packages" in said(capsys)
    assert main(["bundle", "diff", str(gpu_bundle), str(other)]) == 1
    assert "nvidia-open 595.91.07-1: other bytes" in said(capsys)


def test_a_bundle_that_has_ended_is_compared_all_the_same(
    gpu_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old").mkdir()
    ended = b"Date: Thu, 26 Nov 2020 10:00:00 UTC\nValid-Until: Thu, 03 Dec 2020 10:00:00 UTC\n"
    old = bundle(tmp_path / "old", {**FILES, "vendor/a/InRelease": ended})
    assert main(["bundle", "diff", str(old), str(gpu_bundle)]) == 0
    assert "both have the same packages" in said(capsys)


def test_a_plan_takes_its_driver_from_the_bundle_unless_one_is_typed(
    gpu_bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["plan", "--recorded", HOST, "--bundle", str(gpu_bundle), "--json"]
    assert main(argv) == 0
    plan = json.loads(capsys.readouterr().out)["hosts"][0]["plan"]
    assert plan["steps"][0]["id"] == "bundle.put"
    assert (plan["spec"]["driver"], plan["spec"]["driver_source"]) == ("595", "cuda")
    assert plan["spec"]["mirror"] == "file:///var/cache/gpunode/bundle/vendor"
    assert main([*argv, "--driver", "580"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"][0]["plan"]["spec"]["driver"] == "580"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["plan", "--recorded", HOST, "--mirror", "/srv/x"], "--bundle and --mirror exclude each other"),
        (["plan", "--recorded", HOST, "--save", "p"], "--save and --bundle exclude each other"),
        (["setup", "--recorded", HOST, "--plan", "p"], "--plan and --bundle exclude each other"),
        (["setup", "--retry-failed", "last"], "--bundle is of no earlier run"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], what: str, gpu_bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--bundle", str(gpu_bundle)]) == 2
    assert what in said(capsys)


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (["--archive", "http://d b main"], 2, "--archive and --archive-keyring belong together"),
        (["--archive-keyring", "/k"], 2, "--archive and --archive-keyring belong together"),
        (["--package", "nvlsm; reboot"], 2, "is no name of a package"),
        (["--kernel", "$(reboot)"], 2, "is not of the right form"),
        (["--flavour", "closed"], 2, "open or proprietary"),
        (["--machine", "riscv64"], 2, "it is x86_64 or aarch64"),
        (["--trust-key", "ABCD"], 2, "is not a full fingerprint"),
        (["--status", "/nowhere"], 2, "--status /nowhere cannot be read"),
        (["--lock", "/nowhere"], 2, "the lock /nowhere cannot be read"),
    ],
)
def test_what_is_typed_wrongly_fetches_nothing(
    words: list[str], code: int, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CREATE, str(tmp_path / "b"), *words]) == code
    assert what in said(capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_of_another_branch_is_no_lock_for_the_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "l").write_text("schema: gpunode.lock/1\nsetup: {driver: 580.178.04}\n")
    assert main([*CREATE, str(tmp_path / "b"), "--lock", str(tmp_path / "l")]) == 2
    assert "--target asks for driver 595, and the lock has 580.178.04" in said(capsys)


@pytest.mark.parametrize(
    ("lock", "what"),
    [
        ("setup: {driver: 595.91.07, driver_source: distro}", "not from NVIDIA's repository"),
        ("expect: {os: ubuntu 24.04}", "--target is for debian 12, and the lock is of ubuntu 24.04"),
        ("expect: {os: debian 1}", "the lock is of debian 1"),
    ],
)
def test_a_lock_of_what_a_bundle_cannot_have_is_no_lock_for_the_target(
    lock: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "l").write_text(f"schema: gpunode.lock/1\n{lock}\n")
    assert main([*CREATE, str(tmp_path / "b"), "--lock", str(tmp_path / "l")]) == 2
    assert what in said(capsys)
    assert not (tmp_path / "b").exists()
