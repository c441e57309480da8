"""A download that ended leaves no process: systemd holds its unit, and with it a shutdown, until the last is gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources


def of_session(leader: int) -> list[str]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(directory.name)) == leader:
                found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (ProcessLookupError, FileNotFoundError):
            continue  # it ended meanwhile
    return found


@pytest.mark.parametrize("shell", [("dash",), ("bash",), ("busybox", "ash")], ids=lambda words: words[-1])
def test_nothing_runs_on_when_it_has_ended(shell: tuple[str, ...]) -> None:
    script = resources.script("packages/silence") + resources.script("packages/retry")
    with subprocess.Popen(
        (*shell, "-s", "--", "words", "1", "true", "sh", "-c", "sleep 0.2; exit 3"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as process:
        process.communicate(script)
        assert process.returncode == 3
        assert of_session(process.pid) == []
