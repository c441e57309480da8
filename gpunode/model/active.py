"""Tests that do something on a host: which were asked for, how each is done, and what was seen. Values only."""

from __future__ import annotations

from typing import Literal

from gpunode.values import dataclass

# image: the engine loads an image that gpunode makes, and takes docker's verbs; rootfs: it is given a directory (ctr).
Kind = Literal["image", "rootfs"]


@dataclass(frozen=True)
class ActiveTests:
    """What was asked for."""

    smoke: bool = False
    survive_reload: bool = False
    cuda: bool = False
    dcgm: int | None = None  # the level of dcgmi diag, 1 to 4

    def __bool__(self) -> bool:
        return self.containers or self.cuda or self.dcgm is not None

    @property
    def containers(self) -> bool:
        """Whether containers are started."""
        return self.smoke or self.survive_reload


@dataclass(frozen=True)
class Trial:
    """One way in which a container gets the GPU from an engine."""

    engine: str  # RuntimeFacts.label
    unit: str  # its systemd unit; "" for an engine without a daemon
    typed: str  # the way, as users type it: "docker run --gpus all"
    kind: Kind = "image"
    program: str = ""  # the engine's own command line
    socket: str = ""  # of its daemon; "" without one
    address: str = ""  # the variable that leads the program there: "DOCKER_HOST=unix:///run/docker.sock"
    options: tuple[str, ...] = ()  # of its `run`
    unfit: str = ""  # why it cannot be tried; nothing is run then, and nothing known
    fault: str = ""  # why it would fail for everybody; nothing is run then either


@dataclass(frozen=True)
class ContainerView:
    """What one look from inside a container showed."""

    nodes: tuple[str, ...] = ()  # "/dev/nvidia0": the GPUs' own device nodes that are there
    closed: tuple[str, ...] = ()  # "/dev/nvidia0: Operation not permitted": those of them that do not open
    smi_code: int | None = None  # how nvidia-smi -L ended; None: it is not in the container
    smi: tuple[str, ...] = ()  # its lines


@dataclass(frozen=True)
class ContainerTrial:
    """What came of a Trial. Where a view is None, `unknown` or `refused` has the reason."""

    trial: Trial
    refused: str = ""  # what the engine said where it started no container
    first: ContainerView | None = None
    reloaded: ContainerView | None = None  # the same container's view after `systemctl daemon-reload`
    unknown: str = ""  # why there is no answer: not tried, or not in time


@dataclass(frozen=True)
class CudaGpu:
    """What one GPU computed."""

    address: str  # "0000:41:00.0"; "": before any GPU was asked
    sums: str = ""  # of two vectors: "ok", or "wrong 3 of 1048576"; "": not computed
    memory_bytes: int = 0  # to which patterns were written
    memory_wrong: int = 0  # patterns that came back otherwise
    failed: str = ""  # "cuCtxCreate_v2: CUDA_ERROR_SYSTEM_NOT_READY (802)"
    code: int = 0  # CUresult of that


@dataclass(frozen=True)
class CudaFacts:
    """A kernel on every GPU, through libcuda."""

    gpus: tuple[CudaGpu, ...] = ()
    devices: int | None = None  # how many libcuda has; None: the test did not come so far
    unknown: str = ""  # why there is no answer, or not all of it


@dataclass(frozen=True)
class DcgmResult:
    """One test of DCGM's diagnosis on one GPU."""

    test: str  # "pcie"
    where: str  # "GPU 0"; "": of the host
    status: str  # "pass" | "fail" | "warn" | "skip", as DCGM says it, in lower case
    said: tuple[str, ...] = ()
    severities: frozenset[int] = frozenset()  # DCGM's own of its warnings; 5: a setting of the host (dcgm_errors.h)


@dataclass(frozen=True)
class DcgmFacts:
    """`dcgmi diag -r LEVEL`."""

    level: int
    results: tuple[DcgmResult, ...] = ()
    unknown: str = ""  # why there are none


@dataclass(frozen=True)
class ActiveFacts:
    """What active tests showed on one host."""

    asked: ActiveTests
    containers: tuple[ContainerTrial, ...] = ()
    reload: str = ""  # why systemd did not reload; "": it did, or was not asked to
    left: tuple[str, ...] = ()  # what could not be removed afterwards
    cuda: CudaFacts | None = None  # None: not asked for
    dcgm: DcgmFacts | None = None  # likewise
