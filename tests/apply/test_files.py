from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode.apply.files import put_file, remove_file, restore, sha256
from gpunode.apply.journal.entries import Journal, Written
from gpunode.apply.script import Host
from gpunode.errors import Drift, StepFailed
from gpunode.model.action import PutFile, RemoveFile, Run
from tests.apply.machine import Machine

SHELLS = [("dash",), ("bash", "--posix"), ("busybox", "sh")]
OLD, NEW = '{"a": 1}\n', '{"b": 2}\n'


@pytest.fixture(params=SHELLS, ids=["dash", "bash", "busybox"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(tmp_path, request.param)


def put(machine: Machine, action: PutFile) -> Written | None:
    return put_file(Host(machine), Journal("r1"), "s", action)


def siblings(path: Path) -> list[str]:
    return sorted(p.name for p in path.parent.iterdir())


def config(tmp_path: Path, text: str = OLD) -> Path:
    directory = tmp_path / "etc"
    directory.mkdir()
    path = directory / "daemon.json"
    path.write_text(text)
    return path


def test_an_existing_file_keeps_mode_owner_and_symlink_and_is_backed_up(machine: Machine, tmp_path: Path) -> None:
    real = config(tmp_path)
    real.chmod(0o640)
    link = tmp_path / "etc" / "link.json"
    link.symlink_to(real)
    written = put(machine, PutFile(str(link), NEW, expect_sha256=sha256(OLD.encode())))
    assert real.read_text() == NEW
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert written
    assert Path(written.backup).read_text() == OLD
    assert Path(written.backup).stat().st_mode & 0o777 == 0o600
    assert siblings(real) == ["daemon.json", "link.json"]


def test_a_link_that_leads_nowhere_is_refused_and_nothing_is_touched(machine: Machine, tmp_path: Path) -> None:
    directory = tmp_path / "etc"
    directory.mkdir()
    link = directory / "daemon.json"
    link.symlink_to("site.json")
    with pytest.raises(StepFailed, match=r"daemon\.json is a symbolic link to site\.json, which is missing") as caught:
        put(machine, PutFile(str(link), NEW, any_before=True))
    assert "remove the link" in caught.value.remedy.text
    assert siblings(link) == ["daemon.json"]
    assert link.is_symlink()
    assert not machine.state.exists()


def test_odd_bytes_survive(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "odd name's.conf"
    raw = b"\xff\x00caf\xe9 $HOME `id`\n\n"
    put(machine, PutFile(str(path), raw.decode("utf-8", "surrogateescape"), mode=0o600))
    assert path.read_bytes() == raw
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_same_text_is_not_written_again(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path, NEW)
    os.utime(path, (1, 1))
    assert put(machine, PutFile(str(path), NEW)) is None
    assert path.stat().st_mtime == 1


@pytest.mark.parametrize("expect", [None, "0" * 64], ids=["expected absent", "expected other bytes"])
def test_drift_is_told_before_a_byte_is_written(machine: Machine, tmp_path: Path, expect: str | None) -> None:
    path = config(tmp_path)
    with pytest.raises(Drift, match=r"testhost: .*daemon\.json changed") as drift:
        put(machine, PutFile(str(path), NEW, expect_sha256=expect))
    assert sha256(OLD.encode())[:8] not in str(drift.value.evidence)  # of a short password others could guess it
    assert path.read_text() == OLD
    assert not machine.state.exists()


def test_a_file_only_gpunode_owns_may_hold_anything_before(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    put(machine, PutFile(str(path), NEW, any_before=True))
    assert path.read_text() == NEW


def test_a_candidate_that_its_daemon_refuses_is_gone_and_the_daemon_is_quoted(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    refuse = Run(("sh", "-c", 'grep -q b "$1" && echo "unknown key b" >&2; exit 1', "x", "{candidate}"))
    with pytest.raises(StepFailed, match="unknown key b"):
        put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode()), validate=refuse))
    assert path.read_text() == OLD
    assert siblings(path) == ["daemon.json"]


def test_a_refused_candidate_leaves_no_new_directory(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "x.conf"
    with pytest.raises(StepFailed):
        put(machine, PutFile(str(path), NEW, validate=Run(("false",))))
    assert not (tmp_path / "new").exists()


def test_the_validator_may_read_the_path_from_stdin(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    accept = Run(("sh", "-s"), stdin="grep -q b '{candidate}'")
    assert put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode()), validate=accept))


def test_text_that_does_not_arrive_whole_is_refused(tmp_path: Path) -> None:
    class Cut(Machine):
        def run(self, script: str, *, stdin: bytes = b"", timeout_s: float):  # type: ignore[no-untyped-def]
            return super().run(script, stdin=stdin[:3], timeout_s=timeout_s)

    path = config(tmp_path)
    with pytest.raises(StepFailed, match="did not arrive whole"):
        put(Cut(tmp_path), PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode())))
    assert path.read_text() == OLD


def test_restore_brings_back_bytes_and_mode(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    path.chmod(0o604)
    written = put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode())))
    assert written
    path.chmod(0o777)
    assert restore(Host(machine), Journal("r1"), "s", written, own=True) == "restored"
    assert (path.read_text(), path.stat().st_mode & 0o777) == (OLD, 0o604)


def test_restore_removes_what_was_absent_and_the_directories_made_for_it(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "x.conf"
    written = put(machine, PutFile(str(path), NEW))
    assert written
    assert written.directories == 2
    restore(Host(machine), Journal("r1"), "s", written, own=True)
    assert not (tmp_path / "new").exists()


def test_owner_and_mode_that_somebody_gave_it_since_a_killed_run_stay(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    written = put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode())))
    assert written
    path.chmod(0o600)
    assert restore(Host(machine), Journal("r2"), "s", written, own=False) == "restored"
    assert (path.read_text(), path.stat().st_mode & 0o777) == (OLD, 0o600)
    path.chmod(0o640)
    assert restore(Host(machine), Journal("r2"), "s", written, own=False) == "kept"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_removed_file_comes_back_with_its_mode(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    path.chmod(0o600)
    written = remove_file(Host(machine), Journal("r1"), "s", RemoveFile(str(path)))
    assert not path.exists()
    assert written
    restore(Host(machine), Journal("r1"), "s", written, own=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == (OLD, 0o600)


def test_a_file_that_others_wrote_since_a_killed_run_stays(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    written = put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode())))
    assert written
    path.write_text("theirs")
    assert restore(Host(machine), Journal("r1"), "s", written, own=False) == "foreign"
    assert path.read_text() == "theirs"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_leaves_the_file_whole_and_says_so(machine: Machine, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)
    try:
        path = small / "daemon.json"
        path.write_text(OLD)
        with pytest.raises(StepFailed, match="No space left") as caught:
            put(machine, PutFile(str(path), "x" * 200_000, expect_sha256=sha256(OLD.encode())))
        assert "free some space" in caught.value.remedy.text
        assert (path.read_text(), siblings(path)) == (OLD, ["daemon.json"])
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a read-only mount needs root")
def test_a_read_only_directory_is_one_clear_message(machine: Machine, tmp_path: Path) -> None:
    path = config(tmp_path)
    etc = str(path.parent)
    subprocess.run(["mount", "--bind", etc, etc], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", etc], check=True)
        with pytest.raises(StepFailed, match="Read-only file system"):
            put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode())))
        assert path.read_text() == OLD
    finally:
        subprocess.run(["umount", etc], check=True)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory of user 12345's, whom root can be here only."""
    if os.geteuid() != 0:
        pytest.skip("to be another user, these tests run as root")
    mine = Path(tempfile.mkdtemp(prefix="gpunode-home-", dir="/var/tmp"))
    os.chown(mine, 12345, 12345)
    yield mine
    shutil.rmtree(mine)


def test_a_users_file_is_made_changed_and_put_back_as_that_user(machine: Machine, home: Path) -> None:
    path = home / ".config" / "docker" / "daemon.json"
    made = put(machine, PutFile(str(path), OLD, owner="12345:12345"))
    assert made
    assert {(p.stat().st_uid, p.stat().st_gid) for p in (path, path.parent, path.parent.parent)} == {(12345, 12345)}
    path.chmod(0o600)
    changed = put(machine, PutFile(str(path), NEW, expect_sha256=sha256(OLD.encode()), owner="12345:12345"))
    assert changed
    assert (path.read_text(), path.stat().st_uid, path.stat().st_mode & 0o777) == (NEW, 12345, 0o600)
    assert '"run_as": "12345:12345"' in machine.journal
    assert Path(changed.backup).stat().st_uid == 0
    restore(Host(machine), Journal("r1"), "s", changed, own=True)
    assert (path.read_text(), path.stat().st_uid, path.stat().st_mode & 0o777) == (OLD, 12345, 0o600)
    path.unlink()
    restore(Host(machine), Journal("r1"), "s", changed, own=True)
    assert (path.read_text(), path.stat().st_uid, path.stat().st_mode & 0o777) == (OLD, 12345, 0o600)
    restore(Host(machine), Journal("r1"), "s", made, own=True)
    assert list(home.iterdir()) == []


def test_a_users_link_does_not_lead_root_elsewhere(machine: Machine, home: Path, tmp_path: Path) -> None:
    real = config(tmp_path)
    link = home / "daemon.json"
    link.symlink_to(real)
    with pytest.raises(StepFailed, match="not for user 12345 to see"):
        put(machine, PutFile(str(link), NEW, any_before=True, owner="12345:12345"))
    link.unlink()
    link.symlink_to("/etc/passwd")  # one that they may read
    with pytest.raises(StepFailed, match="/etc/passwd is not a file of user 12345"):
        put(machine, PutFile(str(link), NEW, any_before=True, owner="12345:12345"))
    link.unlink()
    # Nor does a directory: what they cannot write, root does not write for them.
    (home / "conf").symlink_to(real.parent)
    with pytest.raises(StepFailed, match="Permission denied"):
        put(machine, PutFile(str(home / "conf" / "new.json"), NEW, owner="12345:12345"))
    assert (real.read_text(), siblings(real)) == (OLD, ["daemon.json"])
