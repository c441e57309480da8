"""A pod without hostPID is process 1 itself: nothing is run, and it says what it lacks. Whole pods are the lab's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode.export.scripts import pod_script


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of its own take root")
def test_without_the_hosts_processes_nothing_is_run(tmp_path: Path) -> None:
    here = tmp_path / "gpunode"
    here.mkdir()
    (here / "host.sh").write_text(f"touch {tmp_path}/ran\n")
    (here / "pod.sh").write_text(pod_script("test", here=str(here), ready=str(tmp_path / "ready")))
    (tmp_path / "ready").write_text("of an earlier container\n")
    inside = f"mount -t proc proc /proc && exec sh {here}/pod.sh"
    alone = subprocess.run(
        ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (alone.returncode, alone.stderr) == (2, "gpunode: process 1 is not the host's: the pod needs hostPID\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpunode"]
