"""A file is the old or the new one, whatever happens; owner, mode and link stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpunode.errors import ConfigFileError, Drift
from gpunode.offline import local_file

STAMP = "20260101T000000Z"


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


def test_bytes_mode_owner_and_link_are_kept_in_a_replacement(tmp_path: Path) -> None:
    real = tmp_path / "real" / "daemon.json"
    real.parent.mkdir()
    real.write_bytes(b"{}\xff\n")
    real.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(real, 12, 34)
    link = tmp_path / "daemon.json"
    link.symlink_to("real/daemon.json")
    facts, before = local_file.read(str(link))
    assert (facts.text, facts.mode, facts.symlink) == ("{}\udcff\n", 0o640, str(real))
    local_file.replace(before, f"{facts.text}new\udcfe\n")
    assert real.read_bytes() == b"{}\xff\nnew\xfe\n"
    assert link.is_symlink()
    assert real.stat().st_mode & 0o7777 == 0o640
    if os.geteuid() == 0:
        assert (real.stat().st_uid, real.stat().st_gid) == (12, 34)
    assert names(real.parent) == ["daemon.json"]


def test_a_new_file_gets_its_directories_and_the_given_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "new.toml"
    facts, before = local_file.read(str(path))
    assert not facts.exists
    local_file.replace(before, "x = 1\n", mode=0o600)
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("x = 1\n", 0o600)


def test_a_dangling_link_is_filled_and_remains_a_link(tmp_path: Path) -> None:
    link = tmp_path / "daemon.json"
    link.symlink_to("elsewhere.json")
    local_file.replace(local_file.read(str(link))[1], "{}")
    assert link.is_symlink()
    assert (tmp_path / "elsewhere.json").read_text() == "{}"


@pytest.mark.parametrize("change", ["edited", "removed", "linked elsewhere", "appeared"])
def test_a_change_between_read_and_write_is_drift_and_is_kept(tmp_path: Path, change: str) -> None:
    path, other = tmp_path / "daemon.json", tmp_path / "other.json"
    other.write_text("other")
    if change != "appeared":
        path.write_text("{}")
    before = local_file.read(str(path))[1]
    if change == "removed":
        path.unlink()
    elif change == "linked elsewhere":
        path.unlink()
        path.symlink_to(other)
    else:
        path.write_text("theirs")
    with pytest.raises(Drift):
        local_file.replace(before, "ours")
    assert not path.exists() or path.read_text() in ("theirs", "other")
    assert not any("gpunode" in name for name in names(tmp_path))


def test_a_directory_and_a_device_are_no_configuration(tmp_path: Path) -> None:
    assert local_file.read(str(tmp_path))[0].unread == "it is a directory"
    assert local_file.read("/dev/zero")[0].unread == "not a regular file"


def test_a_backup_has_the_old_bytes_and_mode_and_is_not_in_a_directory_that_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "crio.conf.d" / "99-nvidia.toml"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o600)
    kept = local_file.back_up(local_file.read(str(path))[1], STAMP)
    assert kept == str(tmp_path / f"99-nvidia.toml.{STAMP}.bak")
    assert (Path(kept).read_text(), Path(kept).stat().st_mode & 0o7777) == ("old", 0o600)
    assert names(path.parent) == ["99-nvidia.toml"]


def test_what_was_written_can_be_rolled_back(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("before")
    befores = [local_file.read(str(p))[1] for p in (old, new)]
    for before in befores:
        local_file.replace(before, "after")
        local_file.restore(before)
    assert old.read_text() == "before"
    assert not new.exists()


def test_a_full_disk_or_a_read_only_one_is_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    """/proc refuses every new file, whoever asks."""
    with pytest.raises(ConfigFileError, match="/proc/nosuch cannot be written"):
        local_file.replace(local_file.read("/proc/nosuch")[1], "x")


# Counts the system calls that change the disk; the process is killed just before number N of them.
KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from gpunode.offline import local_file
left = int(sys.argv[2])
def audit(event, args):
    global left
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if writes or event in ("os.rename", "os.mkdir", "os.remove", "os.chown", "os.chmod", "os.setxattr"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
facts, before = local_file.read(sys.argv[1])
sys.addaudithook(audit)
local_file.replace(before, "new" * 1000)
"""


def test_a_kill_before_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    program = KILLED.format(root=str(Path(__file__).parent.parent.parent))
    path = tmp_path / "daemon.json"
    seen = []
    for step in range(12):
        path.write_text("old")
        ran = subprocess.run([sys.executable, "-c", program, str(path), str(step)], check=False)
        seen.append(path.read_text())
        assert seen[-1] in ("old", "new" * 1000)
        if ran.returncode == 0:
            break
    assert seen[0] == "old"
    assert seen[-1] == "new" * 1000
    assert len(seen) >= 3
