"""gpunode k8s monitoring: a unit that systemd reads without a word."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpunode.cli.app import main


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "dcgm-exporter.service"
    assert main(["k8s", "monitoring", "--form", "unit", "--output", str(unit)]) == 0
    unit.write_text(unit.read_text().replace("/usr/bin/dcgm-exporter -f", "/bin/true -f"))  # not on every machine
    told = subprocess.run(("systemd-analyze", "verify", str(unit)), capture_output=True, text=True, check=False)
    assert "dcgm-exporter.service:" not in told.stderr
