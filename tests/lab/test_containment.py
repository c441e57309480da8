"""The lab in a chroot writes to its own hosts alone: a small machine around the chroot stays as it was, to the byte."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import images
from .escapes import AIMS
from .lab import Lab
from .shell import sh
from .site import ROOT
from .storage import cache

HERE = Path(__file__).parent
CANARY = "nobody writes here\n"
LIMIT_S = 300
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Machine:
    """A throw-away machine of 256 MB: `root` is its root, `chroot` what was written in the chroot on it."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory / "root"

    @property
    def chroot(self) -> Path:
        return self.directory / "inner" / "upper"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """In the chroot of it, in mount and pid namespaces that end with the command."""
        done = subprocess.run(
            (*UNSHARE, "sh", str(HERE / "outer.sh"), str(self.directory), *command),
            cwd=ROOT,
            env={**os.environ, "GPUNODE_LAB": str(cache()), "BINDS": " ".join(_elsewhere())},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode == 77:
            pytest.skip(f"no other machine can be made around a chroot here: {done.stderr.strip()}")
        return done

    def canaries(self) -> dict[str, str]:
        """Every file around the chroot and its hash; in the chroot, of the directories that are aimed at."""
        directories = [self.root / name for name in ("etc", "root", "srv", "home", "var", "usr/local", "opt")]
        directories += [self.chroot / path.strip("/").rpartition("/")[0] for path in AIMS]
        return {str(path): _hash(path) for directory in directories for path in sorted(directory.rglob("*"))}


@pytest.fixture
def machine(lab: Lab, tmp_path: Path) -> Iterator[Machine]:
    directory = tmp_path / "machine"
    directory.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=256M", "tmpfs", directory)
    try:
        made = Machine(directory)
        for path in (made.root, directory / "upper", directory / "work"):
            path.mkdir()
        lower = ":".join(map(str, images.layers("debian12", None)))
        options = f"lowerdir={lower},upperdir={directory}/upper,workdir={directory}/work"
        sh("mount", "-t", "overlay", "outer-machine", "-o", options, made.root)
        for aim in AIMS:
            for root in (made.root, made.chroot):
                canary = root / aim.lstrip("/")
                canary.parent.mkdir(parents=True, exist_ok=True)
                canary.write_text(CANARY)
        yield made
    finally:
        subprocess.run(("umount", "-R", directory), check=False)


def test_boot_enter_write_fill_and_kill_reach_nothing_but_the_host(machine: Machine) -> None:
    before = machine.canaries()
    assert len([path for path in before if Path(path).is_file()]) >= 2 * len(AIMS)
    done = machine.run("sh", "tests/lab/run.sh", sys.executable, "-m", "tests.lab.escapes")
    assert _differences(before, machine.canaries()) == [], done.stderr[-4000:]
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)
    assert seen["in the host"] == dict.fromkeys(AIMS, True)
    assert (seen["full"], 8 << 20 < seen["bytes"] <= 32 << 20) == (True, True)
    assert (seen["another init after the boot"], seen["entered again"]) == (True, True)
    assert (seen["entered when it was dead"], seen["entered with another marker"]) == (False, False)
    assert seen["pid namespace"] != os.readlink("/proc/self/ns/pid")


def test_the_lab_does_not_start_in_the_namespaces_of_the_machine(machine: Machine) -> None:
    before = machine.canaries()
    done = machine.run("env", "-u", "GPUNODE_LAB_OUTER", sys.executable, "-m", "tests.lab.escapes")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("start it with tests/lab/run.sh\n")
    assert len(done.stderr.splitlines()) == 1
    assert _differences(before, machine.canaries()) == []


def test_a_chroot_whose_mounts_would_show_outside_is_refused(machine: Machine) -> None:
    """A plain directory cannot be made private: with shared mounts around it, the lab's own would appear there."""
    script = f"""
      mkdir -p /tmp/plain/usr /tmp/plain/proc /tmp/plain{HERE}
      cp -a /bin /lib* /sbin /tmp/plain/  # links to what is in /usr
      mount --rbind /usr /tmp/plain/usr
      cp {HERE}/run.sh /tmp/plain{HERE}/
      chroot /tmp/plain sh {HERE}/run.sh touch /x"""
    done = machine.run("sh", "-c", script)
    assert done.returncode == 1, done.stderr
    assert "LAB DID NOT RUN" in done.stderr
    assert "mount --bind DIR DIR" in done.stderr
    assert not (machine.chroot / "tmp/plain/x").exists()


def _elsewhere() -> list[str]:
    """What the command needs and the chroot does not show, which has only the file system of this machine's root."""
    needed = (ROOT, Path(sys.prefix), Path(sys.base_prefix))
    here = Path("/").stat().st_dev
    return [str(path) for path in dict.fromkeys(needed) if path.exists() and path.stat().st_dev != here]


def _hash(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    status = path.lstat()
    if not path.is_file():
        return f"{status.st_mode:o}"
    return f"{status.st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def _differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
