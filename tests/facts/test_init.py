"""Who starts daemons again on this host, as the probe tells it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.model.facts import HostFacts
from tests.facts.hosts import make_root, run_probe


def probed(root: Path, shell: str = "sh") -> HostFacts:
    return assemble(run_probe((shell,), root).stdout, "gpu07")


def without_systemd(root: Path) -> None:
    shutil.rmtree(root / "run" / "systemd")


def script(root: Path, name: str, mode: int = 0o755) -> None:
    path = root / "etc" / "init.d" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)


def process_1(root: Path, name: str) -> None:
    (root / "proc" / "1").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "1" / "comm").write_text(f"{name}\n")


@pytest.mark.parametrize(
    ("directory", "comm", "init"),
    [(None, "init", "sysv"), (None, "sh", "none"), (None, "tini", "none"), ("run/openrc", "init", "openrc")],
    ids=["sysv", "a container's shell", "a container's tini", "openrc"],
)
def test_who_is_process_1_and_which_engines_it_can_start(
    tmp_path: Path, directory: str | None, comm: str, init: str
) -> None:
    root = make_root(tmp_path)
    without_systemd(root)
    process_1(root, comm)
    for name in ("docker", "containerd", "ssh"):
        script(root, name)
    script(root, "crio", 0o644)
    if directory:
        (root / directory).mkdir()
    host = probed(root)
    assert (host.init, host.init_scripts) == (init, ("containerd", "docker"))
    assert {engine.init for engine in host.runtimes} == {init}


def test_a_chroot_is_no_host_with_systemd_and_its_daemons_are_the_machines(tmp_path: Path) -> None:
    """/run and /proc of the machine are mounted in it, as image builders do."""
    root = make_root(tmp_path)
    process_1(root, "systemd")
    (root / "proc" / "1" / "root").symlink_to(tmp_path.parent)
    assert (root / "run" / "systemd" / "system").is_dir()
    host = probed(root)
    assert host.init == "chroot"
    assert [engine.name for engine in host.runtimes if engine.active] == []


def test_process_1_with_our_root_is_no_chroot(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    process_1(root, "systemd")
    (root / "proc" / "1" / "root").symlink_to(root)
    assert probed(root).init == "systemd"
