"""Active tests: what is sent to a host, and its answer as values. What engines do is the lab's (test_smoke.py)."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode import resources
from gpunode.errors import HostLocked, StepFailed
from gpunode.facts import active
from gpunode.facts.active_gpu import parse_cuda, parse_dcgm
from gpunode.facts.wire import Section, Sections, encode
from gpunode.model.active import ActiveTests, ContainerView, CudaGpu, Trial
from gpunode.transport.base import Completed

BOTH = ActiveTests(smoke=True, survive_reload=True)
DOCKER = Trial("docker", "docker.service", "docker run", program="docker", socket="/run/docker.sock",
               address="DOCKER_HOST=unix:///run/docker.sock")  # fmt: skip
ROOTLESS = replace(DOCKER, unfit="it is the rootless Docker of ann")
NO_HANDLER = Trial("containerd", "containerd.service", "ctr run", fault="its configuration has no handler nvidia")
SEEN = """open /dev/nvidia0
closed /dev/nvidiactl No such device or address
GPU 0: NVIDIA L4 (UUID: GPU-1)
smi 0
"""
VIEW = ContainerView(
    ("/dev/nvidia0", "/dev/nvidiactl"), ("/dev/nvidiactl: No such device or address",), 0,
    ("GPU 0: NVIDIA L4 (UUID: GPU-1)",),
)  # fmt: skip
ID = "0" * 64


def answer(**sections: Section | str) -> Sections:
    found = {name.replace("__", ":"): s if isinstance(s, Section) else Section(s) for name, s in sections.items()}
    return Sections(found)


class Host:
    """It answers the one script with these sections."""

    target = "gpu07"

    def __init__(self, sections: Sections) -> None:
        self.answer = encode(sections)
        self.scripts: list[str] = []

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.scripts.append(script)
        return Completed(0, self.answer, b"", 1.0)

    def reconnect(self) -> None: ...

    def close(self) -> None: ...


def test_what_each_container_saw_comes_back() -> None:
    host = Host(
        answer(room="", start__0=f"{ID}\n", first__0=SEEN, reload="", again__0=SEEN.replace("smi 0", "smi none"))
    )
    seen = active.observe(host, BOTH, (ROOTLESS, DOCKER, NO_HANDLER))
    rootless, docker, containerd = seen.containers
    assert (rootless.unknown, containerd.refused) == (ROOTLESS.unfit, NO_HANDLER.fault)
    assert docker.first == VIEW
    assert docker.reloaded == replace(VIEW, smi_code=None)
    assert (seen.reload, seen.left, seen.cuda, seen.dcgm) == ("", (), None, None)
    (script,) = host.scripts
    assert "trial 0 image docker /run/docker.sock DOCKER_HOST=unix:///run/docker.sock\n" in script
    assert script.endswith("\ngpunode_active 1 1 0 0 0 </dev/null\n")


def test_a_value_of_the_host_is_one_word_of_the_script() -> None:
    odd = replace(DOCKER, options=("--runtime", "$(reboot); x"))
    assert "--runtime '$(reboot); x'\n" in active.script(BOTH, [odd])


@pytest.mark.parametrize(
    ("sections", "unknown", "refused"),
    [
        (answer(room=""), "it was not reached", ""),
        (answer(room="", root=Section(rc=None, unread="there is no tar")), "of this host's files: there is no tar", ""),
        (answer(room="", start__0=Section(rc=None, unread="there is no program docker")), "no program docker", ""),
        (answer(room="", start__0=Section(f"{ID}\ndocker: Error response from daemon: unknown runtime: x.\n\nRun 'd",
                                          125)), "", "unknown runtime: x."),
        (answer(room="", start__0=ID, first__0=Section("container is not running", 1)), "nothing could be run in", ""),
        (answer(room="", start__0=ID, first__0=Section("open /dev/nvidia0\n", 0)), "nothing could be run in", ""),
        (answer(room="", start__0=ID, first__0=Section(rc=None, unread="not within its limit")), "not within its", ""),
    ],
)  # fmt: skip
def test_what_was_not_seen_has_its_reason(sections: Sections, unknown: str, refused: str) -> None:
    (one,) = active.parse(sections, BOTH, (DOCKER,)).containers
    assert one.first is None
    assert (unknown in one.unknown, bool(one.unknown)) == (True, bool(unknown))
    assert one.refused == refused


@pytest.mark.parametrize(
    ("why", "error", "says"),
    [
        ("locked another gpunode tests this host (process 7)", HostLocked, "gpu07: another gpunode tests this host"),
        ("/var may be written by everybody", StepFailed, "no active test was run: /var may be"),
    ],
)
def test_a_host_without_room_for_it_is_an_error(why: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says.replace("/", ".")):
        active.observe(Host(answer(room=Section(rc=None, unread=why))), BOTH, (DOCKER,))


def test_a_reload_that_was_refused_and_what_was_left_are_told() -> None:
    refused = Section("Failed to reload daemon: Access denied\n", 1)
    seen = active.parse(answer(reload=refused, left="docker rm -f 0: busy\n"), BOTH, ())
    assert seen.reload == "Failed to reload daemon: Access denied"
    assert seen.left == ("docker rm -f 0: busy",)


# ---- what the GPUs did

CUDA = """sum 0000:41:00.0 ok
memory 0000:41:00.0 67108864 0
failed 0000:C1:00.0 cuCtxCreate_v2 802 CUDA_ERROR_SYSTEM_NOT_READY
devices 2
"""


def test_what_each_gpu_computed() -> None:
    seen = parse_cuda(Section(CUDA))
    assert seen.gpus == (
        CudaGpu("0000:41:00.0", "ok", 67108864),
        CudaGpu("0000:c1:00.0", failed="cuCtxCreate_v2: CUDA_ERROR_SYSTEM_NOT_READY (802)", code=802),
    )
    assert (seen.devices, seen.unknown) == (2, "")
    assert parse_cuda(Section("failed - cuInit 803 -\n")).gpus == (CudaGpu("", failed="cuInit: error 803", code=803),)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        (None, "not reached"),
        (Section(rc=None, unread="there is no python3"), "there is no python3"),
        (Section("missing libcuda.so.1: cannot open\n"), "libcuda cannot be loaded: libcuda.so.1"),
        (Section("Traceback (most recent call last):\n", 1), "without an answer: Traceback"),
        (Section("sum 0000:41:00.0 ok\n", 139), "ended early, exit code 139"),
    ],
)
def test_a_cuda_test_that_did_not_end_is_no_pass(section: Section | None, says: str) -> None:
    assert says in parse_cuda(section).unknown


# The program of shell/active/cuda.sh, with a libcuda that computes on the CPU. {FAULT} breaks it.
FAKE = """
import ctypes, sys

fault, blocks = sys.argv[1], {}

class Name:
    def __init__(self, do): self.do = do
    def __call__(self, *given): return self.do(*given) or 0

def put(reference, value): reference._obj.value = value

class Cuda:
    def __getattr__(self, name): return Name(globals().get(name, lambda *given: None))

def cuInit(flags): return 802 if fault == "init" else 0
def cuGetErrorName(code, text): put(text, b"CUDA_ERROR_SYSTEM_NOT_READY")
def cuDeviceGetCount(count): put(count, 1)
def cuDeviceGetPCIBusId(where, size, device): where.value = b"0000:41:00.0"
def cuMemGetInfo_v2(free, whole): put(free, 1 << 20); put(whole, 1 << 30)
def cuMemAlloc_v2(address, size):
    block = ctypes.create_string_buffer(size.value)
    blocks[ctypes.addressof(block)] = block
    put(address, ctypes.addressof(block))
def cuMemcpyHtoD_v2(address, source, size): ctypes.memmove(address.value, source, size.value)
def cuMemcpyDtoH_v2(target, address, size):
    ctypes.memmove(target, address.value, size.value)
    if fault == "memory": ctypes.memset(target, 1, 1)
def cuMemsetD32_v2(address, value, count):
    ctypes.memmove(address.value, value.value.to_bytes(4, sys.byteorder) * count.value, count.value * 4)
def cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, given, extra):
    n = gx.value * bx.value
    first, second, sums = (ctypes.c_uint64.from_address(given[i]).value for i in range(3))
    many = ctypes.c_uint32 * n
    a, b, c = (many.from_address(one) for one in (first, second, sums))
    for i in range(n): c[i] = a[i] + b[i]
    if fault == "sums": c[5] = 0

ctypes.CDLL = lambda name: Cuda()
"""


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("", "sum 0000:41:00.0 ok\nmemory 0000:41:00.0 524288 0\ndevices 1\n"),
        ("sums", "sum 0000:41:00.0 wrong 1 of 1048576\nmemory 0000:41:00.0 524288 0\ndevices 1\n"),
        ("memory", "sum 0000:41:00.0 wrong 1 of 1048576\nmemory 0000:41:00.0 524288 3\ndevices 1\n"),
        ("init", "failed - cuInit 802 CUDA_ERROR_SYSTEM_NOT_READY\n"),
    ],
)
def test_the_program_that_calls_libcuda(fault: str, says: str, tmp_path: Path) -> None:
    text = resources.script("active/cuda")
    program = text.partition("gpunode_cuda='")[2].partition("\n'\n")[0]
    (tmp_path / "program.py").write_text(FAKE + program)
    done = subprocess.run(["python3", "-I", tmp_path / "program.py", fault], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (says, "")


def diagnosis(name: str, *results: dict[str, Any], **test: Any) -> Sections:
    tests = [{"name": "software", "results": list(results), **test}]
    return answer(dcgm=json.dumps({name: {"test_categories": [{"category": "Deployment", "tests": tests}]}}) + "\n")


PASSED = {"entity_group": "GPU", "entity_id": 0, "status": "Pass"}
FAILED = {"entity_group": "GPU", "entity_id": 1, "status": "Fail", "warnings": [
    {"warning": "Persistence mode is off", "error_severity": 5}]}  # fmt: skip


def test_a_diagnosis_of_dcgm_4_and_of_older_ones() -> None:
    seen = parse_dcgm(diagnosis("DCGM Diagnostic", PASSED, FAILED, test_summary={"status": "Fail"}), 1).results
    assert [(one.where, one.status) for one in seen] == [("GPU 0", "pass"), ("GPU 1", "fail")]
    assert (seen[1].said, seen[1].severities) == (("Persistence mode is off",), frozenset({5}))
    old = {"gpu_ids": "0,1", "status": "FAIL", "warnings": ["A DBE was found"]}
    (one,) = parse_dcgm(diagnosis("DCGM GPU Diagnostic", old), 1).results
    assert (one.test, one.where, one.status, one.said) == ("software", "GPU 0,1", "fail", ("A DBE was found",))
    summed = parse_dcgm(diagnosis("DCGM Diagnostic", PASSED, test_summary={"status": "Fail"}), 1).results
    assert [one.status for one in summed] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        (answer(), "not reached"),
        (answer(dcgm=Section(rc=None, unread="dcgmi is not installed")), "not installed"),
        (
            answer(dcgm="Error: unable to establish a connection to the specified host: localhost\n"),
            "unable to establish",
        ),
        (answer(dcgm='{"DCGM Diagnostic": {"runtime_error": "not supported"}}\n'), "not supported"),
        (answer(dcgm='{"DCGM Diagnostic": \n'), "is no JSON"),
        (answer(dcgm="{}\n"), "no result"),
        (answer(dcgm=""), "printed nothing"),
    ],
)
def test_a_diagnosis_without_results_has_its_reason(sections: Sections, says: str) -> None:
    seen = parse_dcgm(sections, 1)
    assert seen.results == ()
    assert says in seen.unknown


@pytest.mark.parametrize(
    ("said", "looks"), [(["smi 0"], 1), (["", "smi 0"], 2), (["open /dev/nvidia0", "smi 0"], 2), (["", "", "smi 0"], 2)]
)
def test_a_look_without_its_last_word_is_repeated_once(tmp_path: Path, said: list[str], looks: int) -> None:
    for number, text in enumerate(said, 1):
        (tmp_path / f"{number}").write_text(f"{text}\n")
    script = (
        resources.script("active/containers")
        + """
within() { n=$((${n:-0} + 1)); RC=0; cp "$T/$n" "$T/look.out"; }
said() { echo "$n"; }
SEEN=first NUMBER=0 TOOL=ctr
look exec
"""
    )
    shell = subprocess.run(
        ["sh"], input=f"T={tmp_path}\n{script}", capture_output=True, text=True, check=True, timeout=60
    )
    assert (shell.stdout, shell.stderr) == (f"{looks}\n", "")
