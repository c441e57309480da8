"""at_lead_version.sh with a real shell: the libraries follow the module's driver version."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources

SCRIPT = Path(resources.PACKAGE) / "shell" / "packages" / "at_lead_version.sh"
RPM = """#!/bin/sh
case $* in
  *nvidia-open-driver-G06-signed-cuda-kmp-default) printf '%s\\n' 580.95.05_k6.4.0_150700.51 ;;
  *) echo "package is not installed"; exit 1 ;;
esac
"""


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    tool = tmp_path / "rpm"
    tool.write_text(RPM)
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return subprocess.run(("sh", str(SCRIPT), *words), env=env, capture_output=True, text=True)


def test_the_version_is_the_drivers_without_the_kernels(tmp_path: Path) -> None:
    words = ("printf", "<%s>", "install", "nvidia-compute-utils-G06=@VERSION@", "a b")
    done = run(tmp_path, "nvidia-open-driver-G06-signed-cuda-kmp-default", *words)
    assert (done.returncode, done.stdout) == (0, "<install><nvidia-compute-utils-G06=580.95.05><a b>")


@pytest.mark.parametrize("lead", ["nvidia-open"])
def test_without_the_module_nothing_is_installed(tmp_path: Path, lead: str) -> None:
    done = run(tmp_path, lead, "touch", str(tmp_path / "ran"))
    assert done.returncode == 65
    assert lead in done.stderr
    assert not (tmp_path / "ran").exists()
