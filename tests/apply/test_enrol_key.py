"""The script that queues DKMS's key for the firmware: no key that is there is written over."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.planner.kernel.secureboot import HALF_A_KEY
from tests.packages.test_repo_scripts import tool

# The two that it asks for; mokutil takes the certificate and the password twice.
OPENSSL = """
while [ $# -gt 1 ]; do
  case $1 in -keyout | -out) echo "made $1" >"$2" ;; esac
  shift
done
"""
MOKUTIL = 'echo "$*" >>"$STATE/told"; sort -u | wc -l >>"$STATE/told"\n'


def enrol(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    tool(tmp_path, "openssl", OPENSSL)
    tool(tmp_path, "mokutil", MOKUTIL)
    files = [str(tmp_path / "mok" / name) for name in ("mok.key", "mok.pub")]
    return subprocess.run(
        ("sh", "-s", "--", *files, str(tmp_path / "run" / "password")),
        input=resources.script("kernel/enrol_key"),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "STATE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("there", [("mok.key", "mok.pub"), ()], ids=["the key of before", "a new one"])
def test_the_certificate_is_queued(there: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mok").mkdir()
    for name in there:
        (tmp_path / "mok" / name).write_text("before\n")
    done = enrol(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "told").read_text().split() == ["--import", str(tmp_path / "mok" / "mok.pub"), "1"]
    texts = [(tmp_path / "mok" / name).read_text() for name in ("mok.key", "mok.pub")]
    assert texts == (["before\n"] * 2 if there else ["made -keyout\n", "made -out\n"])


@pytest.mark.parametrize("there", ["mok.key", "mok.pub"])
def test_half_a_key_is_left_as_it_is(there: str, tmp_path: Path) -> None:
    """The firmware may know the certificate of a private key whose other half was moved away."""
    file = tmp_path / "mok" / there
    file.parent.mkdir()
    file.write_text("before\n")
    done = enrol(tmp_path)
    assert done.returncode == HALF_A_KEY
    assert f"{file} is there, and the other of" in done.stderr
    assert (file.read_text(), os.listdir(file.parent)) == ("before\n", [there])
    assert not (tmp_path / "told").exists()
