"""gpunode k8s readiness: drop-ins that systemd reads without a word."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpunode.cli.app import main


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("form", ["systemd", "cdi"])
def test_systemd_finds_no_fault_in_a_drop_in(form: str, tmp_path: Path) -> None:
    unit = tmp_path / "gpunode-test.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    (tmp_path / "gpunode-test.service.d").mkdir()
    written = tmp_path / "gpunode-test.service.d" / "50-gpunode.conf"
    assert main(["k8s", "readiness", "--form", form, "--output", str(written)]) == 0
    told = subprocess.run(("systemd-analyze", "verify", str(unit)), capture_output=True, text=True, check=False)
    assert "50-gpunode.conf" not in told.stderr
