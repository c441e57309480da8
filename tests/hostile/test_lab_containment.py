"""The lab enters only hosts that it made; what it knows of them is held against what the kernel says. Needs no lab."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import storage
from tests.lab.containment import Made, NotOurs, Seen, door, exposure, inside, mounted_root, namespaces, why_not_ours
from tests.lab.filesystem import Filesystem

ROOT = Path(__file__).parents[2]
OURS: dict[str, tuple[int, int]] = {"mnt": (4, 100), "pid": (4, 101), "net": (4, 102)}
LAB = {"mnt": (4, 1), "pid": (4, 2), "net": (4, 3)}
AROUND = {"mnt": (4, 11), "pid": (4, 12), "net": (4, 13)}
MADE = Made(parent=70, started="5000", root=(44, 9), token="a word")
SEEN = Seen(parent=70, started="5000", namespaces=OURS, root=(44, 9), token="a word")


def test_the_host_that_the_lab_made_is_entered() -> None:
    assert why_not_ours(SEEN, MADE, (LAB, AROUND)) is None
    assert why_not_ours(SEEN, dataclasses.replace(MADE, started=None), (LAB, {})) is None


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"parent": 1}, "parent is process 1, not the 70"),
        ({"started": "5001"}, "started at 5001"),
        ({"namespaces": {**OURS, "mnt": LAB["mnt"]}}, "mnt namespace is not its own"),
        ({"namespaces": {**OURS, "pid": LAB["pid"]}}, "pid namespace is not its own"),
        ({"namespaces": {**OURS, "net": AROUND["net"]}}, "net namespace is not its own"),
        ({"root": (65024, 2)}, "its root is (65024, 2)"),
        ({"token": None}, "no .gpunode-lab-host"),
        ({"token": "another word"}, "another .gpunode-lab-host"),
    ],
    ids=[
        "process 1's child",
        "a pid given to another process",
        "the lab's mounts",
        "the lab's processes",
        "the machine's network",
        "the machine's root",
        "a root without the marker",
        "another host's root",
    ],
)
def test_anything_else_is_not(changed: dict[str, object], word: str) -> None:
    reason = why_not_ours(dataclasses.replace(SEEN, **changed), MADE, (LAB, AROUND))  # type: ignore[arg-type]
    assert reason is not None
    assert word in reason


def test_a_child_that_shares_this_process_s_namespaces_is_not_entered() -> None:
    child = subprocess.Popen(("sleep", "60"))
    try:
        status = os.stat("/")
        made = Made(os.getpid(), None, (status.st_dev, status.st_ino), "")
        with pytest.raises(NotOurs, match="mnt namespace is not its own"), door(child.pid, made):
            pytest.fail("entered")
    finally:
        child.kill()
        child.wait()
    with pytest.raises(NotOurs, match="not entered"), door(child.pid, made):
        pytest.fail("entered what has ended")


def test_nothing_is_a_host_s_root_that_is_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(NotOurs, match="nothing is mounted"):
        mounted_root(tmp_path)


OUTER = "mnt:[1] pid:[2] net:[3] "
APART = {"mnt:[101]", "pid:[102]", "net:[103]"}


@pytest.mark.parametrize(
    ("own", "outer", "interfaces", "proc_is_ours", "word"),
    [
        (APART, "", ["lo"], True, "not in namespaces of its own"),
        (APART, "mnt:[1] net:[3]", ["lo"], True, "not in namespaces of its own"),
        ({"mnt:[1]", "pid:[2]", "net:[3]"}, OUTER, ["lo", "eth0"], True, "mnt:[1] net:[3] pid:[2]"),
        ({"mnt:[101]", "pid:[2]", "net:[103]"}, OUTER, ["lo"], True, "the machine's own pid:[2]"),
        (APART, OUTER, ["lo"], False, "/proc"),
        (APART, OUTER, ["lo", "lab0", "eth0", "vb-a1b2c-10"], True, "with eth0"),
        (APART, OUTER, ["lo", "docker0"], True, "with docker0"),
    ],
    ids=[
        "no word of run.sh",
        "half a word",
        "the same as run.sh's",
        "one shared",
        "another /proc",
        "a GPU",
        "a bridge",
    ],
)
def test_the_lab_does_not_start(
    own: set[str], outer: str, interfaces: list[str], proc_is_ours: bool, word: str
) -> None:
    reason = exposure(own, outer, interfaces, proc_is_ours=proc_is_ours)
    assert reason is not None
    assert word in reason
    assert "tests/lab/run.sh" in reason


def test_the_lab_starts_where_nothing_else_is_in_reach() -> None:
    assert exposure(APART, OUTER, ["lo", "lab0", "vb-a1b2c-10", "sit0", "tunl0"], proc_is_ours=True) is None


def test_a_machine_whose_process_1_may_not_be_looked_at_still_tells_its_own_namespaces() -> None:
    assert set(namespaces("self")) == {"mnt", "pid", "net"}
    assert namespaces("0") == {}


# Files of a host, from outside


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host's root with links that, followed by this machine, would leave it."""
    made = tmp_path / "root"
    for directory in ("etc", "srv", "run/user"):
        (made / directory).mkdir(parents=True)
    links = {
        "var": "/run",
        "srv/abs": "/etc",
        "srv/up": "../../../../etc",
        "etc/file": "/etc/passwd",
        "etc/loop": "loop",
    }
    for name, target in links.items():
        (made / name).symlink_to(target)
    return made


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/etc/docker/daemon.json", "etc/docker/daemon.json"),
        ("/var/x", "run/x"),
        ("/srv/abs/passwd", "etc/passwd"),
        ("/srv/up/passwd", "etc/passwd"),
        ("/../../../../etc/passwd", "etc/passwd"),
        ("/srv/nowhere/../../../etc/passwd", "etc/passwd"),
        ("/etc/file", "etc/file"),
        ("/", "."),
    ],
)
def test_a_path_of_a_host_stays_in_it(root: Path, path: str, place: str) -> None:
    assert inside(root, path) == root / place
    assert inside(root, path, follow=True) == root / place.replace("etc/file", "etc/passwd")


def test_a_loop_of_links_ends(root: Path) -> None:
    assert inside(root, "/etc/loop") == root / "etc/loop"
    with pytest.raises(OSError, match="more than 40 links"):
        inside(root, "/etc/loop", follow=True)


@pytest.mark.parametrize(("disk_mib", "tmpfs_root"), [(None, None), (64, None), (None, "40M")])
def test_only_a_disk_that_was_made_with_a_size_is_filled(
    tmp_path: Path, disk_mib: int | None, tmpfs_root: str | None
) -> None:
    """Nothing is mounted there: the directory is on this machine's own disk, whatever was asked for."""
    files = Filesystem(tmp_path, (), disk_mib, tmpfs_root)
    files.root.mkdir()
    with pytest.raises(ValueError, match="only one made with a size"):
        files.made_size_mib()


def test_only_one_place_enters_hosts_and_only_one_fills_disks() -> None:
    sources = {path: path.read_text() for path in (ROOT / "tests/lab").rglob("*.py")}
    entering = {path.name for path, text in sources.items() if re.search(r'"nsenter"|nsenter -|setns', text)}
    assert entering == {"containment.py", "lab.py"}  # lab.py: that it is installed
    endless = {
        path.name for path, text in sources.items() if re.search(r"(?<!head -c 3000000 )/dev/(zero|u?random)", text)
    }
    assert endless == {"host.py"}
    assert not [path for path, text in sources.items() if re.search(r"fallocate|killall|os\.killpg", text)]


# What an interrupted run left

CLAIM = "from tests.lab.storage import claim_run_directory as claim; print(claim().name, flush=True); input()"


def test_a_run_that_lives_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pid says nothing, since each run counts pids of its own; its lock does."""
    monkeypatch.setenv("GPUNODE_LAB", str(tmp_path))
    argv = (sys.executable, "-c", CLAIM)
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert storage.sweep() == []
        assert (tmp_path / "run" / name / "owner").exists()
        other.stdin.write("\n")
    assert storage.sweep() == [name]
    assert not (tmp_path / "run" / name).exists()


def test_two_runs_of_one_process_number_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUNODE_LAB", str(tmp_path))
    mine = [storage.claim_run_directory() for _ in range(3)]
    assert len(set(mine)) == 3
    assert storage.sweep() == []
    for directory in mine:
        storage.release_run_directory(directory)
    assert list((tmp_path / "run").iterdir()) == []
