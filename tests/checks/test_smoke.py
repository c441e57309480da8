"""What active tests showed, judged: only what was asked for has a verdict, and what was not seen is never a pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.registry import Context
from gpunode.checks.smoke import trials
from gpunode.model.active import ActiveFacts, ActiveTests, ContainerTrial, ContainerView, Trial
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable
from gpunode.model.spec import Spec
from tests.checks import hosts as h

BOTH = ActiveTests(smoke=True, survive_reload=True)
DOCKER = Trial("docker", "docker.service", "docker run --gpus all")
CDI = Trial("podman", "", "podman run --device nvidia.com/gpu=all")
LISTED = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"
WELL = ContainerView(("/dev/nvidia0", "/dev/nvidiactl"), (), 0, (LISTED,))
DENIED = replace(WELL, closed=("/dev/nvidia0: Operation not permitted",), smi_code=255, smi=("Failed to initialize",))
BLIND = ContainerView((), (), None, ())
NODES = replace(WELL, smi_code=None, smi=())
RAN = ContainerTrial(DOCKER, "", WELL, WELL)


def seen(*containers: ContainerTrial, asked: ActiveTests = BOTH, **more: object) -> HostFacts:
    return h.host(active=replace(ActiveFacts(asked, containers), **more))  # type: ignore[arg-type]


def outcome(id: str, host: HostFacts) -> CheckOutcome:
    return run_all(host, Spec(), load_catalog(), today=h.TODAY).results[f"smoke.{id}"].outcome


FAULTS = (
    (
        "container-gpu",
        seen(replace(RAN, first=None, refused="unknown or invalid runtime name: nvidia")),
        "unknown or inv",
    ),
    ("container-gpu", seen(replace(RAN, first=BLIND)), "docker run --gpus all: no /dev/nvidia0 is in it"),
    ("container-gpu", seen(replace(RAN, first=DENIED)), "/dev/nvidia0: Operation not permitted"),
    (
        "container-gpu",
        seen(replace(RAN, first=replace(NODES, closed=("/dev/nvidia0: No such device",)))),
        "No such device",
    ),
    ("container-gpu", seen(replace(RAN, first=replace(WELL, smi_code=9, smi=("NVML",)))), "exit code 9, NVML"),
    ("container-gpu", seen(replace(RAN, first=replace(WELL, smi=("No devices were found",)))), "No devices"),
    ("container-gpu", replace(seen(RAN), driver=h.smi(h.SEEN, h.SEEN).driver), "lists 1 of 2 GPUs"),
    ("container-gpu", seen(RAN, ContainerTrial(CDI, "unresolvable CDI devices")), "nvidia.com/gpu=all: unresolvable"),
    (
        "daemon-reload",
        seen(replace(RAN, reloaded=DENIED)),
        "after systemctl daemon-reload, docker run --gpus all: /dev",
    ),
    ("daemon-reload", seen(replace(RAN, reloaded=BLIND)), "no /dev/nvidia0"),
    ("cleanup", seen(RAN, left=("docker rm -f 0123: in use",)), "docker rm -f 0123: in use"),
)


@pytest.mark.parametrize(("id", "host", "quoted"), FAULTS, ids=[f"{row[0]}: {row[2]}" for row in FAULTS])
def test_a_fault_is_found_quoted_and_given_a_remedy(id: str, host: HostFacts, quoted: str) -> None:
    found = outcome(id, host)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert found.remedy


def test_every_check_has_a_fault_and_passes_where_all_is_well() -> None:
    ids = {doc.id.removeprefix("smoke.") for doc in all_checks() if doc.id.startswith("smoke.")} - {"cuda", "dcgm"}
    assert {row[0] for row in FAULTS} == ids
    assert [outcome(id, seen(RAN)) for id in sorted(ids)] == [None] * len(ids)
    assert outcome("container-gpu", seen(replace(RAN, first=NODES))) is None, "compute alone brings no nvidia-smi"


@pytest.mark.parametrize(
    ("id", "host", "reason"),
    [
        ("container-gpu", h.READY, "not asked for: --smoke"),
        ("daemon-reload", h.READY, "not asked for: --survive-reload"),
        ("daemon-reload", seen(RAN, asked=ActiveTests(smoke=True)), "not asked for: --survive-reload"),
        ("cleanup", h.READY, "not asked for"),
        ("container-gpu", seen(), "no engine runs here"),
        ("container-gpu", seen(RAN, ContainerTrial(CDI, unknown="there is no program podman")), "no program podman"),
        ("daemon-reload", seen(replace(RAN, first=BLIND)), "no container had the GPU before"),
        ("daemon-reload", seen(RAN, reload="Access denied"), "systemd did not reload: Access denied"),
        ("daemon-reload", seen(replace(RAN, reloaded=None, unknown="it was killed")), "it was killed"),
    ],
)
def test_what_was_not_seen_is_never_a_pass(id: str, host: HostFacts, reason: str) -> None:
    found = outcome(id, host)
    assert isinstance(found, NotApplicable)
    assert reason in found.reason


def test_of_two_engines_the_one_that_fails_is_named() -> None:
    found = outcome("container-gpu", seen(RAN, ContainerTrial(CDI, "unresolvable")))
    assert isinstance(found, Finding)
    assert found.summary == "a container of podman does not get the GPU"
    assert found.entities == ()


def test_engines_are_tried_as_their_users_ask_them() -> None:
    podman = replace(h.DOCKER_ENGINE, name="podman", version="5.4.2", unit="", socket="")
    host = h.host(runtimes=(*h.READY.runtimes, podman))
    made = {t.typed: t for t in trials(host, Context(None, load_catalog()))}
    assert list(made) == [
        "docker run",
        "docker run --gpus all",
        "ctr run --runc-binary /usr/bin/nvidia-container-runtime",
        "podman run --device nvidia.com/gpu=all",
    ]
    assert made["docker run"].options == ()
    other = h.host(runtimes=(replace(h.DOCKER_ENGINE, effective_default="runc"),))
    assert trials(other, Context(None, load_catalog()))[0].typed == "docker run --runtime nvidia"


def test_containerd_is_given_the_program_and_the_cgroup_driver_of_its_handler() -> None:
    bare = h.CONTAINERD.partition("  options")[0]
    table = f'{bare}[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\n'
    host = h.host(files=h.files(containerd=f'{table}BinaryName = "/opt/nvidia"\nSystemdCgroup = true\n'))
    (one,) = (t for t in trials(host, Context(None, load_catalog())) if t.kind == "rootfs")
    assert one.options[:3] == ("--runc-binary", "/opt/nvidia", "--runc-systemd-cgroup")
    assert (one.unfit, one.fault) == ("", "")
    none = h.host(files=h.files(containerd="version = 2\n"))
    (one,) = (t for t in trials(none, Context(None, load_catalog())) if t.kind == "rootfs")
    assert "no handler nvidia" in one.fault
