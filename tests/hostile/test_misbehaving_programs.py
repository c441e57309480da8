"""An nvidia-smi or a docker that hangs, is deaf, prints garbage or without end.

The whole probe ends in its time, what it has is no healthy GPU, and neither a process nor a file of it is left.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.facts.collect import PROBE_TIMEOUT_S, assemble
from gpunode.facts.probe_script import probe_script
from gpunode.model.facts import HostFacts
from gpunode.model.smi import SmiFacts
from gpunode.transport.answer import ANSWER_LIMIT_BYTES
from tests.facts.hosts import SMI_XML, make_root
from tests.hostile.test_fake_sockets import host, listening
from tests.hostile.test_probe_ends import left, until
from tests.hostile.users import needs_root

SMI_LIMIT_S = 2


class Probed(NamedTuple):
    facts: HostFacts
    size: int
    files: list[Path]  # what is left of its directory


def probed(root: Path, **env: str) -> Probed:
    """The probe of `root`; raises TimeoutExpired where it does not end in its time."""
    with subprocess.Popen(
        ("sh", "-s"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GPUNODE_ROOT": str(root), "GPUNODE_SMI_LIMIT_S": str(SMI_LIMIT_S), **env},
    ) as running:
        try:
            stream, _ = running.communicate(probe_script().encode(), timeout=PROBE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
    return Probed(assemble(stream, "gpu07"), len(stream), left(running.pid))


def processes(root: Path) -> Iterator[str]:
    """Those that the probe of `root` started: they all have it in their environment."""
    mark = f"GPUNODE_ROOT={root}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                yield f"{name} {Path('/proc', name, 'comm').read_text().strip()}"


def verdict(facts: HostFacts) -> object:
    return run_all(facts, None, load_catalog()).results["user.smi-works"].outcome


PROGRAMS = {
    "hangs": ("echo half an answer; exec sleep 600", 124),
    "hangs with an answer": (f"cat <<'END'\n{SMI_XML}END\nexec sleep 600", 124),
    "prints garbage": ("head -c 300000 /dev/urandom", 0),
    "prints without end": ("exec yes '<gpu>'", None),
    "prints empty lines without end": ("exec yes ''", None),
    "prints one line without end": ("exec tr '\\0' x </dev/zero", None),
    "complains without end": ("exec yes >&2", None),
    "crashes": ("echo '<?xml'; kill -SEGV $$", 139),
    "is no program": ("exec /nosuch/nvidia-smi", None),
}


@pytest.mark.parametrize(("body", "code"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_bad_nvidia_smi_costs_its_limit_and_leaves_nothing(body: str, code: int | None, tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {"nvidia-smi": f"#!/bin/sh\n{body}\n"})
    done = probed(root)
    assert done.files == []
    assert done.size < ANSWER_LIMIT_BYTES
    smi = done.facts.driver.smi
    assert smi is not None
    assert smi.code not in (0,) if code is None else smi.code == code
    assert done.facts.driver.loaded == "610.57.04", "the rest of the host is not known any more"
    assert verdict(done.facts) is not None
    assert until(lambda: not list(processes(root)))


def test_a_deaf_one_is_asked_to_end_and_never_killed(tmp_path: Path) -> None:
    """A client of NVML that is killed has frozen GPUs; it is left to itself, and with its end nothing remains."""
    answer = tmp_path / "answer"
    body = f"#!/bin/sh\ntrap 'echo asked >{tmp_path}/asked' TERM\nwhile [ ! -e {answer} ]; do sleep 0.2; done\n"
    root = make_root(tmp_path / "root", {"nvidia-smi": body})
    try:
        begun = time.monotonic()
        done = probed(root)
        assert time.monotonic() - begun < PROBE_TIMEOUT_S
        assert (done.facts.driver.smi, done.files) == (SmiFacts(124), [])
        assert until((tmp_path / "asked").exists)
        assert any("nvidia-smi" in one for one in processes(root)), "it was killed"
        assert verdict(done.facts) is not None
    finally:
        answer.touch()
    assert until(lambda: not list(processes(root)))


# nvidia-smi(1), RETURN VALUE; 1 and 255 are seen as well. What it prints then is from the same page and from reports.
CODES = {
    1: "Failed to initialize NVML: Unknown Error",
    2: "Invalid combination of input arguments.",
    3: "Not Supported",
    4: "Insufficient Permissions",
    6: "No devices were found",
    8: "Unable to determine the device handle for GPU0: 0000:41:00.0: Insufficient External Power",
    9: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    10: "Failed to initialize NVML: Interrupt Issue",
    12: "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
    13: "Failed to initialize NVML: Function Not Found",
    14: "WARNING: infoROM is corrupted at gpu 0000:41:00.0",
    15: "Unable to determine the device handle for GPU0: 0000:41:00.0: GPU is lost.",
    255: "Failed to initialize NVML: Driver/library version mismatch",
}


@pytest.mark.parametrize(("code", "said"), CODES.items(), ids=map(str, CODES))
def test_no_code_of_nvidia_smi_is_a_pass(code: int, said: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.write_text(f"{said}\n")
    done = probed(make_root(tmp_path / "root", {"nvidia-smi": f"#!/bin/sh\ncat {told}\nexit {code}\n"}))
    assert done.facts.driver.smi is not None
    assert (done.facts.driver.smi.code, done.facts.driver.smi.message) == (code, said)
    assert verdict(done.facts) is not None
    assert done.files == []
    assert until(lambda: not list(processes(tmp_path / "root")))


@needs_root
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    "says", [b"", b"HTTP/1.1 200 OK\r\n\r\n{", b"x"], ids=["nothing", "half an answer", "one letter"]
)
def test_a_docker_that_hangs_costs_its_limit_and_leaves_nothing(says: bytes) -> None:
    askers: list[socket.socket] = []

    def hang(asker: socket.socket) -> None:
        asker.sendall(says)
        askers.append(asker.dup())  # it stays open when this one is closed

    with host() as root, listening(root / "var/run/docker.sock", hang) as answers:
        try:
            done = probed(root)
            assert answers.asked >= 1
            (docker,) = (runtime for runtime in done.facts.runtimes if runtime.name == "docker")
            assert docker.effective_default is None
            assert done.facts.driver.smi is not None
            assert done.facts.driver.smi.code == 0
            assert done.files == []
            assert until(lambda: not list(processes(root)))
        finally:
            for asker in askers:
                asker.close()
