"""Whose nvidia-modprobe is: its mode and owner, from the one stat that the probe makes of all programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.driver import parse_modprobe
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
