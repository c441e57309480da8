"""Whose nvidia-modprobe is: its mode and owner, from the one stat that the probe makes of all programs; and the options
that modprobe.d sets for the module.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.driver import parse_modprobe
from gpunode.facts.kernel import parse_options
from gpunode.model.system import ModprobeHelper
from tests.facts.hosts import make_root, run_probe


def seen(root: Path, shell: str) -> ModprobeHelper | Literal["absent"] | None:
    return assemble(run_probe((shell,), root).stdout, "gpu07").driver.modprobe


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("mode", [0o4755, 0o755, 0o4757], ids=oct)
def test_its_mode_and_owner_are_those_of_the_file(shell: str, mode: int, tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-modprobe": "#!/bin/sh\n"})
    (root / "usr/bin/nvidia-modprobe").chmod(mode)
    assert seen(root, shell) == ModprobeHelper(mode, os.getuid(), os.getgid())


def test_where_it_is_not_installed_that_is_known(tmp_path: Path) -> None:
    assert seen(make_root(tmp_path), "sh") == "absent"


def test_of_a_link_nothing_is_said(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "usr/bin/nvidia-modprobe").symlink_to("elsewhere")
    assert seen(root, "sh") is None


@pytest.mark.parametrize(
    "text", [None, "", "-", "89ed", "89ed 0", "89ed -1 0", "rwsr-xr-x 0 0", "89ed 0 0 0", f"{'f' * 40} 0 0", "²ed 0 0"]
)
def test_what_is_no_answer_is_not_known(text: str | None) -> None:
    assert parse_modprobe(text) is None


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "setuid", "writable"),
    [
        (0o4755, 0, 0, True, False),
        (0o755, 0, 0, False, False),
        (0o4775, 0, 0, True, False),
        (0o4775, 0, 1000, True, True),
        (0o4757, 0, 0, True, True),
        (0o4755, 1000, 0, False, True),
    ],
    ids=["as packages have it", "not set-uid", "root's group", "a group", "everybody", "a user's"],
)
def test_who_may_write_it(mode: int, uid: int, gid: int, setuid: bool, writable: bool) -> None:
    helper = ModprobeHelper(mode, uid, gid)
    assert (helper.setuid, helper.writable) == (setuid, writable)


def test_options_of_the_module_are_those_of_the_files_in_force() -> None:
    text = """/etc/modprobe.d/nvidia.conf:options nvidia NVreg_DeviceFileMode=0660 NVreg_ExcludedGpus="GPU-1"
/etc/modprobe.d/zz.conf:options nvidia-current NVreg_DeviceFileMode=0666
/etc/modprobe.d/zz.conf:options nvidia-drm modeset=1
/run/modprobe.d/aa.conf:blacklist nouveau
/usr/lib/modprobe.d/nvidia.conf:options nvidia NVreg_EnableGpuFirmware=0
/usr/lib/modprobe.d/zz.conf:options nvidia NVreg_DeviceFileMode=0600
"""
    assert {(one.path, one.key, one.value) for one in parse_options(text)} == {
        ("/etc/modprobe.d/zz.conf", "DeviceFileMode", "0666"),
        ("/etc/modprobe.d/nvidia.conf", "ExcludedGpus", "GPU-1"),
    }


def test_the_probe_finds_the_options_of_any_file(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/modprobe.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/modprobe.d/gpus.conf").write_text("# GPUs\noptions nvidia NVreg_DeviceFileMode=0660\n")
    found = assemble(run_probe(("sh",), root).stdout, "gpu07").kernel.options
    assert [(one.path, one.key, one.value) for one in found] == [
        ("/etc/modprobe.d/gpus.conf", "DeviceFileMode", "0660")
    ]


def test_what_keeps_modules_away_is_found_in_the_files_in_force(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for path, line in {
        "etc/modprobe.d/off.conf": "alias nvidia off",
        "etc/modprobe.d/masked.conf": "# as root wants it",
        "usr/lib/modprobe.d/masked.conf": "blacklist nvidia-drm",
        "usr/lib/modprobe.d/uvm.conf": "install nvidia-uvm /bin/false",
        "usr/lib/modprobe.d/plain.conf": "blacklist nvidia-peermem",
        "usr/lib/modprobe.d/other.conf": "alias nvidia-modeset nvidia-current-modeset",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{line}\n")
    kernel = assemble(run_probe(("sh",), root).stdout, "gpu07").kernel
    assert {name for name in kernel.blacklisted if name.startswith("nvidia")} == {
        "nvidia",
        "nvidia_uvm",
        "nvidia_peermem",
    }
    assert {name for name in kernel.barred if name.startswith("nvidia")} == {"nvidia", "nvidia_uvm"}
