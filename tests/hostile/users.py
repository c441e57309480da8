"""Local users who are no friends: their directories, files and processes, and the probe that root runs beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.probe_script import probe_script
from gpunode.model.facts import HostFacts

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who is the one that is attacked")


def give(path: Path, uid: int = NOBODY) -> Path:
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


@contextmanager
def open_directory(uid: int = 0) -> Iterator[Path]:
    """A directory that every user can reach; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="gpunode-hostile-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield give(directory, uid)


@contextmanager
def process(directory: Path, name: str, *arguments: str, uid: int = NOBODY) -> Iterator[subprocess.Popen[bytes]]:
    """A process called `name` that waits: a copy of the shell, which anybody can make, with these arguments behind."""
    program = directory / name
    shutil.copyfile("/bin/sh", program)
    program.chmod(0o755)
    give(program, uid)
    with subprocess.Popen(
        ("sh", "-c", "read line", *arguments),
        executable=program,
        stdin=subprocess.PIPE,
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
    ) as started:
        assert Path(f"/proc/{started.pid}/comm").read_text() == f"{name}\n"
        yield started
        assert started.stdin is not None
        started.stdin.close()


def leave_a_mark(program: Path, mark: Path) -> None:
    """The file is another one now: whoever runs it says so in `mark`. The process goes on with the old one."""
    program.unlink()
    program.write_text(f"#!/bin/sh\nid -u >>{mark}\n")
    program.chmod(0o755)
    give(program)


def probe_here(shell: str = "sh", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The probe as a transport sends it, on this very machine."""
    return subprocess.run(
        (shell, "-s"),
        input=probe_script().encode(),
        capture_output=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


def this_host() -> HostFacts:
    return assemble(probe_here().stdout, "here")
