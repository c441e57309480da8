"""The words for a unit: they lead to the gpunode that runs now, or it is said that a boot takes it away."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from gpunode.fleet import apply_one
from gpunode.fleet.own_command import barred_by_selinux, lost_at_boot, own_command
from gpunode.model.spec import Spec


@pytest.mark.parametrize("mode", [0o644, 0o755], ids=["no program", "a program"])
def test_one_file_that_unpacks_itself_is_started_by_the_same_python(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its first line EL 9 would start it with Python 3.9."""
    file = tmp_path / "c.pyz"
    file.write_bytes(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(file, "a") as made:
        made.writestr("__main__.py", "")
    file.chmod(mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["c.pyz"])
    assert own_command() == (sys.executable, str(file))


def test_a_launcher_is_started_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "gpunode"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(launcher)])
    assert own_command() == (str(launcher),)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /scratch\\040disk rw,nosuid shared:12 - tmpfs tmpfs rw,size=50%
31 22 8:2 / /home rw,relatime shared:13 - xfs /dev/sda2 rw
"""


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (("/usr/bin/python3", "/tmp/x.pyz"), "/tmp"),
        (("/dev/shm/venv/bin/gpunode",), "/dev/shm"),
        (("/run/gpunode.pyz",), "/run"),
        (("/usr/bin/python3", "/scratch disk/x.pyz"), "/scratch disk"),
        (("/usr/bin/python3", "/home/ann/x.pyz"), None),
        (("/usr/bin/python3", "-m", "gpunode"), None),
        (("/var/tmp/x.pyz",), None),
        (("/tmpx/gpunode",), None),
    ],
)
def test_what_a_boot_may_take_away_is_named(argv: tuple[str, ...], place: str | None) -> None:
    said = lost_at_boot(argv, MOUNTS)
    assert (place is None) == (said == "")
    assert place is None or f"a boot may leave nothing in {place}" in said.replace("'", "")


def test_nothing_stays_of_a_system_in_memory() -> None:
    live = MOUNTS.replace("ext4 /dev/sda1", "tmpfs rootfs")
    assert lost_at_boot(("/usr/bin/gpunode",), live)


@pytest.mark.parametrize(
    ("argv", "enforcing", "barred"),
    [
        (("/root/.local/bin/gpunode",), True, True),
        (("/home/ann/venv/bin/python", "-m", "gpunode"), True, True),
        (("/root/.local/bin/gpunode",), False, False),
        (("/usr/bin/python3", "/root/gpunode.pyz"), True, False),
        (("/opt/gpunode/bin/gpunode",), True, False),
        (("/homes/gpunode",), True, False),
    ],
)
def test_where_selinux_is_enforcing_systemd_starts_nothing_from_a_home_directory(
    argv: tuple[str, ...], enforcing: bool, barred: bool
) -> None:
    said = barred_by_selinux(argv, enforcing)
    assert (argv[0] in said) is barred
    assert bool(said) is barred


@pytest.mark.parametrize(
    ("argv", "enforcing", "fault"),
    [
        (("/run/gpunode.pyz",), False, "gpunode runs from /run/gpunode.pyz"),
        (("/root/.local/bin/gpunode",), True, "SELinux is enforcing"),
        (("/usr/bin/gpunode",), True, ""),
    ],
    ids=["in memory", "in a home directory", "from its package"],
)
def test_what_goes_on_after_a_reboot_says_what_keeps_it_from_that(
    argv: tuple[str, ...], enforcing: bool, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enforce = tmp_path / "enforce"
    enforce.write_text("1" if enforcing else "0")
    monkeypatch.setattr("gpunode.fleet.own_command._ENFORCE", str(enforce))
    monkeypatch.setattr(apply_one, "own_command", lambda: argv)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    resume = apply_one.resume_of(Spec(), "20261128T000001Z-1")
    assert resume.fault.startswith(fault)
    assert bool(resume.fault) is bool(fault)
    assert resume.argv[: len(argv) + 2] == (*argv, "setup", "--yes")
