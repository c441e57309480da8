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


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_a_kubelet_starts_at_boot_beside_toolkit_1_19_0(tmp_path: Path) -> None:
    """Its nvidia-cdi-refresh.service is After=multi-user.target, which is after all that it wants."""
    units = tmp_path / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True)
    (units / "multi-user.target").write_text("[Unit]\nDescription=Multi-User System\n")
    for name, more in {"kubelet": "", "nvidia-cdi-refresh": "After=multi-user.target\n"}.items():
        (units / f"{name}.service").write_text(f"[Unit]\nDescription=x\n{more}[Service]\nExecStart=/bin/true\n")
        (units / f"multi-user.target.wants/{name}.service").symlink_to(f"../{name}.service")
    (units / "kubelet.service.d").mkdir()
    drop_in = units / "kubelet.service.d/50-gpunode.conf"
    assert main(["k8s", "readiness", "--form", "systemd", "--output", str(drop_in)]) == 0
    assert "cycle" not in _verified(tmp_path)
    drop_in.write_text("[Unit]\nAfter=nvidia-cdi-refresh.service\n")
    assert "ordering cycle" in _verified(tmp_path)


def _verified(root: Path) -> str:
    words = ("systemd-analyze", f"--root={root}", "verify", "multi-user.target")
    return subprocess.run(words, capture_output=True, text=True, check=False).stderr
