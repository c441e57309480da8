"""Names of open files, locks, access lists and names of processes: what a user of a host can make of them for root."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from tests.facts.hosts import ROOTS, make_root, run_probe
from tests.hostile.openpgp import Key
from tests.hostile.users import NOBODY, give, needs_root, open_directory, process

SHELLS = [("dash",), ("bash",), ("busybox", "sh")]
USERS = "Uid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\n"


@pytest.fixture(params=SHELLS, ids="-".join)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if shutil.which(request.param[0]) is None:
        pytest.skip(f"{request.param[0]} is not installed")
    words: tuple[str, ...] = request.param
    return words


def looked_at(root: Path, shell: tuple[str, ...] = ("sh",)) -> HostFacts:
    done = run_probe(shell, root)
    assert done.returncode == 0, done.stderr
    return assemble(done.stdout, "gpu07")


# ---- open files


def holds(root: Path, pid: int, comm: str, *targets: str) -> None:
    directory = root / "proc" / str(pid) / "fd"
    directory.mkdir(parents=True, exist_ok=True)
    (directory.parent / "comm").write_text(f"{comm}\n")
    for number, target in enumerate(targets):
        (directory / str(number)).symlink_to(target)


@pytest.mark.parametrize(
    "forged",
    [
        "/home/eve/x\n{root}/proc/1/fd:\nl-wx 1 root root 64 Nov 22 1 -> /dev/nvidia0",
        "/home/eve/x\n\n{root}/proc/1/fd:\ntotal 0\nlr-x 3 -> /dev/nvidiactl (deleted)\n",
        "/home/eve/x\n/proc/1/fd:\n-> /dev/nvidia-uvm",
    ],
    ids=["a listing", "a listing with its total", "of the true /proc"],
)
def test_the_name_of_an_open_file_speaks_for_no_other_process(
    forged: str, shell: tuple[str, ...], tmp_path: Path
) -> None:
    root = make_root(tmp_path)
    holds(root, 1, "systemd", "/dev/null")
    holds(root, 700, "train", "/dev/null", "/dev/nvidia0", "/dev/nvidiactl")
    holds(root, 990, "eve", forged.format(root=root))
    busy = looked_at(root, shell).driver.busy
    assert "700 train" in busy
    assert not [line for line in busy if line.startswith("1 ")]


# ---- locks


@pytest.mark.parametrize(
    ("status", "held"),
    [("Name:\tapt-get\n" + ROOTS, True), ("Name:\tapt-get\n" + USERS, False), (f"Uid:\t{NOBODY}\t0\t0\t0\n", False)],
    ids=["root", "a user", "a set-uid program of a user"],
)
def test_a_lock_of_a_user_on_another_file_of_that_number_is_no_lock_of_apt(
    status: str, held: bool, tmp_path: Path
) -> None:
    root = make_root(tmp_path)
    lock = root / "var/lib/dpkg/lock-frontend"
    lock.parent.mkdir(parents=True)
    lock.touch()
    directory = root / "proc/991"
    directory.mkdir()
    (directory / "comm").write_text("apt-get\n")
    (directory / "status").write_text(status)
    (root / "proc/locks").write_text(f"1: POSIX  ADVISORY  WRITE 991 00:2a:{lock.stat().st_ino} 0 EOF\n")
    assert bool(looked_at(root).packages.lock_holder) is held


# ---- key files and lists


@needs_root
@pytest.mark.parametrize("where", ["a user's directory", "a link through one", "a directory with an access list"])
def test_a_key_that_a_user_can_replace_is_not_believed(where: str, tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = root / "usr/share/keyrings/nvidia.gpg"
    path.parent.mkdir(parents=True)
    if where == "a link through one":
        (root / "usr/share/theirs").mkdir()
        (root / "usr/share/theirs/key.gpg").write_bytes(Key("vendor").block)
        give(root / "usr/share/theirs")
        path.symlink_to("../theirs/key.gpg")
    else:
        path.write_bytes(Key("vendor").block)
        path.chmod(0o644)
    assert where == "a link through one" or "/usr/share/keyrings/nvidia.gpg" in looked_at(root).packages.primaries
    if where == "a user's directory":
        give(path.parent)
    elif where == "a directory with an access list":
        access_list(path.parent)
    assert looked_at(root).packages.primaries == {}


def access_list(directory: Path, uid: int = NOBODY) -> None:
    """user::rwx user:UID:rwx group::r-x mask::rwx other::r-x, as setfacl writes it (linux/posix_acl_xattr.h)."""
    none = 0xFFFFFFFF
    entries = ((1, 7, none), (2, 7, uid), (4, 5, none), (16, 7, none), (32, 5, none))
    try:
        os.setxattr(
            directory,
            "system.posix_acl_access",
            struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries),
        )
    except OSError as error:
        pytest.skip(f"no access lists can be set here: {error}")
    shown = subprocess.run(("ls", "-ld", str(directory)), capture_output=True, text=True, check=True).stdout
    if shown[10:11] != "+":
        pytest.skip("this ls does not mark access lists")


@needs_root
def test_a_program_in_a_directory_that_an_access_list_opens_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    root = make_root(tmp_path / "root", {"containerd": f"#!/bin/sh\necho ran >>{mark}\n"})
    assert looked_at(root).file("/etc/docker/daemon.json").text
    assert mark.exists()
    mark.unlink()
    access_list(root / "usr/bin")
    access_list(root / "etc/docker")
    host = looked_at(root)
    assert not mark.exists()
    assert host.file("/etc/docker/daemon.json").text is None
    assert "access list" in (host.file("/etc/docker/daemon.json").unread or "")


@needs_root
def test_a_list_of_packages_in_a_users_directory_is_not_read(tmp_path: Path) -> None:
    """apt's file is a link there, and they may put a pipe in its place just when root opens it."""
    root = make_root(tmp_path)
    (root / "home").mkdir()
    (root / "home/nvidia.list").write_text("deb https://developer.download.nvidia.com/canary /\n")
    give(root / "home")
    (root / "etc/apt/sources.list.d").mkdir(parents=True)
    for name in ("nvidia.list", "nvidia.sources"):
        (root / "etc/apt/sources.list.d" / name).symlink_to("../../../home/nvidia.list")
    assert b"canary" not in run_probe(("sh",), root).stdout


# ---- names of processes


def pids(shell: tuple[str, ...], *words: str) -> list[str]:
    script = resources.script("daemon/restart") + '\ngpunode_pids "$@"\n'
    done = subprocess.run((*shell, "-s", "--", *words), input=script, capture_output=True, text=True, check=True)
    return done.stdout.split()


@needs_root
def test_without_systemd_a_users_process_is_no_daemon_that_runs(shell: tuple[str, ...]) -> None:
    """Root would leave the true one stopped, and take it for running."""
    uid = 54323  # no account of this machine has it, and no other test
    with open_directory(uid) as directory:
        with process(directory, "dockerd", uid=uid) as theirs:
            assert str(theirs.pid) not in pids(shell, "docker.service")
            assert pids(shell, "docker.service", str(uid)) == [str(theirs.pid)]
        with process(directory, "crio", uid=0) as roots:
            until = time.monotonic() + 60
            while str(roots.pid) not in pids(shell, "crio.service") and time.monotonic() < until:
                time.sleep(0.05)
            assert str(roots.pid) in pids(shell, "crio.service")
            assert str(roots.pid) not in pids(shell, "crio.service", str(uid))
