"""NVIDIA's own nvidia-smi of three branches, where there is no GPU: what it says and how it ends is read as it is.

The programs and NVML come from Debian's packages, by scripts/check. As root they run without CAP_MKNOD: NVML would make
/dev/nvidiactl.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.facts.collect import assemble
from gpunode.model.report import Finding
from tests.facts.hosts import make_root, run_probe

FETCHED = Path(sys.prefix, "nvidia-smi")  # a directory for each of SUITES
SUITES = {"bullseye": "470", "bookworm": "535", "trixie": "550"}
NO_NODES = "setpriv --bounding-set=-mknod --" if os.geteuid() == 0 else ""
NO_LIBRARY = "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."
NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


def real(suite: str, library: Path) -> str:
    """A program that is the real one: the probe clears LD_LIBRARY_PATH, and sees a root of its own."""
    directory = FETCHED / suite
    if not directory.is_dir():
        pytest.skip(f"no nvidia-smi of Debian {suite}: scripts/check could not fetch it")
    words = shlex.join((f"LD_LIBRARY_PATH={library}", str(directory / "nvidia-smi")))
    return f'#!/bin/sh\nexec {NO_NODES} env {words} "$@"\n'


@pytest.mark.parametrize("suite", SUITES, ids=SUITES.values())
@pytest.mark.parametrize(
    ("with_library", "code", "said"), [(False, 12, NO_LIBRARY), (True, 9, NO_DRIVER)], ids=["no NVML", "no driver"]
)
def test_the_real_one_without_a_gpu(suite: str, with_library: bool, code: int, said: str, tmp_path: Path) -> None:
    library = FETCHED / suite if with_library else Path("/nonexistent")
    root = make_root(tmp_path / "root", {"nvidia-smi": real(suite, library)})
    facts = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert facts.driver.smi is not None
    assert (facts.driver.smi.code, facts.driver.smi.gpus) == (code, ())
    assert facts.driver.smi.message.startswith(said)
    found = run_all(facts, None, load_catalog()).results["user.smi-works"].outcome
    assert isinstance(found, Finding)
    assert said in found.evidence
    assert not os.path.lexists("/dev/nvidiactl"), "it made a device node of this machine"
