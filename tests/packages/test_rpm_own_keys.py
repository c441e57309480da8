"""The keys that a host's own repositories name: read from its entries, by the shells that hosts of rpms have."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources


# busybox has an rpm of its own, and no host of rpms has its sh.
@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix")], ids=lambda words: words[0])
def test_keys_that_the_hosts_own_entries_name_are_accepted(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Of entries that are on, of files that root alone writes; of a bundle's or gpunode's own entries none."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rpm").write_text(f'#!/bin/sh\necho "$2" >>{tmp_path}/imported\n')
    (tmp_path / "bin/rpm").chmod(0o755)
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("base-9", "off", "own", "second", "loose"):
        (keys / name).write_text("key\n")
    (keys / "loose").chmod(0o666)
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "a.repo").write_text(
        f"[base]\nenabled=1\ngpgkey=file://{keys}/base-$releasever\n  file://{keys}/second\n"
        f"[off]\nenabled=0\ngpgkey=file://{keys}/off\n[gpunode-cuda]\ngpgkey=file://{keys}/own\n"
        f"[odd]\ngpgkey=https://elsewhere/key file://{keys}/loose file://{keys}/$(touch${{IFS}}{tmp_path}/run)\n"
    )
    done = subprocess.run(
        (*shell, "-s", "--", f"{lists}:{tmp_path}/none"),
        input=resources.script("packages/rpm_own_keys"),
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "imported").read_text().split() == [f"{keys}/base-9", f"{keys}/second"]
    assert "loose can be written by others than root" in done.stdout
    assert not (tmp_path / "run").exists()
