"""The services around the driver: each check passes, finds its fault, and says why when it cannot tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.causes import folded
from gpunode.facts.smi import parse_smi
from gpunode.model import entities
from gpunode.model.facts import (
    HostFacts,
    KernelFacts,
    KubernetesFacts,
    MpsProcess,
    OsFacts,
    ServiceFacts,
)
from gpunode.model.gpu_health import GpuHealth
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiFacts, SmiGpu
from tests.checks import hosts as h

FM, IMEX = "nvidia-fabricmanager.service", "nvidia-imex.service"
PERSISTENCED, DCGM = "nvidia-persistenced.service", "nvidia-dcgm.service"
RUNS = ServiceFacts("loaded", "active", "running", "enabled", main_pid=700, restarts=0, wanted_by=("multi-user",))
BY_HAND = replace(RUNS, enabled="disabled", wanted_by=())  # systemctl start, and no more
FAILED = ServiceFacts("loaded", "failed", "failed", "enabled")
LOOPS = ServiceFacts("loaded", "activating", "auto-restart", "enabled")
OFF = ServiceFacts("loaded", "inactive", "dead", "disabled")
GOOD = {"summary": "Healthy", "bandwidth": "Full", "route_unhealthy": "False", "incorrect_configuration": "None"}
JOINED = SmiGpu(0, h.GPU.address, "NVIDIA H100 80GB HBM3", fabric_state="Completed", fabric_status="Success",
                fabric_health=GOOD, persistence=True, health=h.HEALTH)  # fmt: skip
B200 = replace(h.GPU, device="2901")
TRAY = replace(h.GPU, device="2941")  # GB200


def with_packages(**versions: str) -> Any:
    return h.packages(nvidia__fabricmanager=h.V, **versions)


SET_UP = h.seen("use", JOINED, compute_mode="Exclusive_Process")
MPS = MpsProcess(4711, 1000, container=False)
WELL = replace(
    h.smi(JOINED),
    services={FM: RUNS, PERSISTENCED: RUNS, DCGM: RUNS, "docker.service": RUNS},
    packages=with_packages(),
)
NVLINK5 = replace(
    WELL, pci=(B200,), driver=replace(WELL.driver, switch_management=("0000:05:00.0",)),
    packages=with_packages(nvlsm="2025.10"),
    kernel=replace(WELL.kernel, modules=frozenset({"nvidia", "mlx5_ib", "ib_umad"})),
)  # fmt: skip
UNSEEN = replace(NVLINK5, driver=WELL.driver)
PLAIN = replace(WELL, pci=(replace(h.GPU, device="27b8"),))  # L4
TRAYS = replace(WELL, pci=(TRAY,), services={IMEX: RUNS}, kubernetes=KubernetesFacts())
BARE = HostFacts("bare", "bare", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=False)
IDS = tuple(doc.id for doc in all_checks() if doc.id.startswith("svc."))


def outcome(id: str, host: HostFacts) -> CheckOutcome:
    return run_all(host, None, load_catalog(), today=h.TODAY).results[id].outcome


def unit(name: str, state: ServiceFacts, on: HostFacts = WELL) -> HostFacts:
    return replace(on, services={**on.services, name: state})


def triggered_by(name: str) -> ServiceFacts:
    return replace(BY_HAND, wanted_by=(name,))


def gpu(**changes: Any) -> HostFacts:
    return replace(WELL, driver=h.smi(replace(JOINED, **changes)).driver)


def health(**changes: str) -> HostFacts:
    return gpu(fabric_health=GOOD | changes)


def busy(*lines: str, **changes: Any) -> HostFacts:
    return replace(WELL, driver=replace(WELL.driver, busy=lines), **changes)


def shared(gpu: SmiGpu, *processes: MpsProcess) -> HostFacts:
    """A GPU of this compute mode, and these processes of MPS."""
    return replace(WELL, driver=replace(h.smi(gpu).driver, mps=processes))


def mode(name: str) -> SmiGpu:
    return h.seen("use", JOINED, compute_mode=name)


PASSES: tuple[tuple[str, HostFacts], ...] = (
    *((id, WELL) for id in IDS if id not in ("svc.nvlsm", "svc.imex", "svc.fabricmanager-needless")),
    ("svc.fabricmanager-needless", unit(FM, OFF, PLAIN)),
    ("svc.nvlsm", NVLINK5),
    ("svc.fabricmanager-active", NVLINK5),
    ("svc.imex", TRAYS),
    ("svc.persistenced", gpu(persistence=False, name="NVIDIA GeForce RTX 4090")),
    ("svc.persistenced", gpu(persistence=False, name="NVIDIA RTX 2000 Ada Generation Laptop GPU")),
    ("svc.fabricmanager-active", unit(FM, replace(RUNS, active="activating"))),
    *(("svc.fabricmanager-active", unit(FM, replace(RUNS, enabled=state))) for state in ("static", "linked", "")),
    ("svc.restart-flap", unit("docker.service", replace(RUNS, restarts=2))),
    ("svc.restart-flap", replace(unit("kubelet.service", replace(RUNS, active="activating", restarts=900)),
                                 kubernetes=KubernetesFacts(True))),
    ("svc.dcgm-profiling-lock", busy("7 nv-hostengine", "8 python3")),
    ("svc.starts-at-boot", unit("docker.service", replace(BY_HAND, wanted_by=("nomad.service",)))),
    ("svc.starts-at-boot", unit("docker.service", replace(BY_HAND, enabled="static"))),
    ("svc.starts-at-boot", replace(unit("kubelet.service", triggered_by("kubelet.path")),
                                   kubernetes=KubernetesFacts(True, distribution="kubeadm", joined=True))),
    ("svc.starts-at-boot", unit("docker.socket", RUNS, unit("docker.service", BY_HAND))),
    ("svc.starts-at-boot", unit("docker.service", replace(OFF, wanted_by=()), unit("containerd.service", RUNS))),
    ("svc.starts-at-boot", replace(unit("kubelet.service", BY_HAND), kubernetes=KubernetesFacts(True, running=True))),
    ("svc.mps", shared(SET_UP, MPS)),
    ("svc.mps", shared(SET_UP, replace(MPS, container=True))),
    ("svc.mps", shared(mode("Prohibited"))),
)  # fmt: skip
FAULTS: tuple[tuple[str, HostFacts, str, Severity | None], ...] = (
    ("svc.fabricmanager-active", unit(FM, FAILED), f"{FM}: ActiveState failed", None),
    ("svc.fabricmanager-active", unit(FM, OFF), "ActiveState inactive, SubState dead, disabled", None),
    ("svc.fabricmanager-active", unit(FM, ServiceFacts()), "is not found", None),
    ("svc.fabricmanager-active", unit(FM, LOOPS),
     "ActiveState activating, SubState auto-restart", None),
    *(("svc.fabricmanager-active", unit(FM, replace(RUNS, enabled=state)), f"UnitFileState {state}", None)
      for state in ("disabled", "enabled-runtime")),
    ("svc.fabricmanager-active", unit(FM, ServiceFacts(), NVLINK5), "is not found", None),
    ("svc.fabricmanager-needless", unit(FM, FAILED, PLAIN), f"{FM}: ActiveState failed, SubState failed; no NV", None),
    ("svc.fabricmanager-needless", unit(FM, LOOPS, PLAIN),
     "SubState auto-restart", None),
    ("svc.fabricmanager-version", replace(WELL, packages=h.packages(nvidia__fabricmanager__595="595.71.05")),
     "package nvidia-fabricmanager-595 595.71.05-1; /sys/module/nvidia/version holds 595.91.07", None),
    ("svc.fabricmanager-version", replace(WELL, packages=h.packages(nvidia__fabric__manager="595.71.05")),
     "package nvidia-fabric-manager 595.71.05-1", None),
    ("svc.fabricmanager-version", replace(WELL, packages=h.packages(nvidia__fabricmanager__595="595.71.05",
                                                                    nvidia__fabricmanager__dev__595=h.V)),
     "package nvidia-fabricmanager-595 595.71.05-1", None),
    ("svc.fabricmanager-version", replace(WELL, packages=h.packages(nvidia__fabricmanager="595.71.05",
                                                                    nvidia__fabricmanager__595=h.V)),
     "package nvidia-fabricmanager 595.71.05-1", None),
    ("svc.fabric-state", gpu(fabric_state="In Progress", fabric_status=None), "In Progress, status not given", None),
    ("svc.fabric-state", gpu(fabric_status="NVML_ERROR_UNKNOWN"), "Completed, status NVML_ERROR_UNKNOWN", None),
    ("svc.fabric-health", health(summary="Unhealthy", route_unhealthy="True"), "route_unhealthy True", None),
    ("svc.fabric-health", health(incorrect_configuration="Incorrect SysGUID"), "Incorrect SysGUID", None),
    ("svc.fabric-health", health(summary="Limited Capacity", route_recovery_in_progress="True"),
     "route_recovery_in_progress True", Severity.WARNING),
    ("svc.nvlsm", replace(NVLINK5, packages=with_packages()), "no package nvlsm; switches are managed",
     None),
    ("svc.nvlsm", replace(NVLINK5, kernel=WELL.kernel), "/sys/module/ib_umad is absent", None),
    ("svc.nvlsm", replace(NVLINK5, kernel=replace(WELL.kernel, modules=frozenset({"nvidia", "ib_umad"}))),
     "/sys/class/infiniband has none of their functions; switches are managed through 0000:05:00.0", None),
    ("svc.imex", unit(IMEX, FAILED, TRAYS), "ActiveState failed", None),
    ("svc.imex", unit(IMEX, ServiceFacts(), TRAYS), "is not found", None),
    ("svc.imex", unit(IMEX, LOOPS, TRAYS), "ActiveState activating, SubState auto-restart", None),
    ("svc.imex", replace(unit(IMEX, LOOPS, TRAYS), kubernetes=KubernetesFacts(True)), "SubState auto-restart", None),
    ("svc.imex", replace(unit(IMEX, FAILED, TRAYS), kubernetes=KubernetesFacts(True)), "ActiveState failed", None),
    ("svc.persistenced", unit(PERSISTENCED, FAILED), "ActiveState failed", None),
    ("svc.persistenced", unit(PERSISTENCED, OFF, gpu(persistence=False)), "persistenced.service: inactive", None),
    ("svc.persistenced", replace(gpu(persistence=False), services={}), "not found", None),
    ("svc.persistenced", gpu(persistence=False, name="NVIDIA RTX PRO 6000 Blackwell Server Edition"), "Disabled", None),
    ("svc.dcgm", unit(DCGM, FAILED), "ActiveState failed", None),
    ("svc.dcgm-profiling-lock", busy("7 nv-hostengine", "9 dcgm-exporter"), "7 nv-hostengine", None),
    ("svc.mps", shared(SET_UP), "compute_mode: Exclusive_Process; no process is called nvidia-cuda-mps", None),
    ("svc.mps", shared(JOINED, MPS, MpsProcess(8, None, True)),
     "compute_mode: Default; nvidia-cuda-mps: process 4711 of uid 1000, process 8 of an unknown user, in a container",
     None),
    ("svc.restart-flap", unit("docker.service", replace(RUNS, restarts=3)), "docker.service: NRestarts 3", None),
    ("svc.restart-flap", replace(unit("kubelet.service", replace(RUNS, restarts=7)),
                                 kubernetes=KubernetesFacts(True, joined=True)),
     "kubelet.service: NRestarts 7", None),
    ("svc.starts-at-boot", unit("docker.service", BY_HAND), "docker.service: UnitFileState disabled", None),
    ("svc.starts-at-boot", unit("docker.socket", BY_HAND, unit("docker.service", BY_HAND)),
     "docker.service: UnitFileState disabled", None),
    ("svc.starts-at-boot", unit("docker.socket", BY_HAND, unit("docker.service", triggered_by("docker.socket"))),
     "docker.service: UnitFileState disabled", None),
    ("svc.starts-at-boot", replace(unit("kubelet.service", BY_HAND),
                                   kubernetes=KubernetesFacts(True, distribution="kubeadm", joined=True)),
     "kubelet.service: UnitFileState disabled", None),
)  # fmt: skip
UNKNOWN: tuple[tuple[str, HostFacts, str], ...] = (
    ("svc.fabricmanager-active", replace(WELL, pci=(h.GPU,)), "no NVSwitch"),
    ("svc.fabricmanager-version", replace(WELL, pci=(h.GPU,)), "no NVSwitch"),
    ("svc.fabricmanager-active", UNSEEN, "0000:41:00.0 may have are not seen: no network function has SW_MNG"),
    ("svc.fabricmanager-version", UNSEEN, "are not seen"),
    ("svc.nvlsm", replace(UNSEEN, root=False), "SW_MNG in its VPD, which root alone reads"),
    ("svc.fabricmanager-active", replace(WELL, services={}), "was not read"),
    ("svc.fabricmanager-active", replace(WELL, init="openrc"), "was not read"),
    ("svc.fabricmanager-needless", unit(FM, FAILED), "the board has NVSwitches"),
    ("svc.fabricmanager-needless", unit(FM, FAILED, replace(WELL, pci=(h.GPU,))), "made for boards with NVSwitches"),
    ("svc.fabricmanager-needless", replace(PLAIN, services={}), "was not read"),
    ("svc.fabricmanager-version", replace(WELL, packages=h.packages()), "no package provides"),
    ("svc.fabricmanager-version", replace(WELL, packages=h.packages(nvidia__fabricmanager="595.99.01"),
                                          driver=replace(WELL.driver, installed="595.99.01")),
     "drv.running-vs-installed"),
    ("svc.fabric-state", gpu(fabric_state="N/A"), "reports no fabric"),
    ("svc.fabric-state", replace(WELL, driver=replace(WELL.driver, smi=None), unread={"smi": "silent"}), "silent"),
    ("svc.fabric-state", replace(WELL, driver=replace(WELL.driver, smi=SmiFacts(9))), "reports no fabric"),
    ("svc.fabric-health", gpu(fabric_health={"bandwidth": "N/A"}), "no health"),
    ("svc.nvlsm", WELL, "no NVLink 5 switches"),
    ("svc.imex", WELL, "no GPU here"),
    ("svc.imex", replace(unit(IMEX, OFF, TRAYS), kubernetes=KubernetesFacts(True)), "ComputeDomains"),
    ("svc.imex", replace(TRAYS, services={}), "was not read"),
    ("svc.persistenced", gpu(persistence=None), "does not say"),
    ("svc.dcgm", unit(DCGM, ServiceFacts()), "not installed, or off"),
    ("svc.dcgm", replace(WELL, services={FM: RUNS}), "was not read"),
    ("svc.dcgm", replace(WELL, init="sysv"), "sysv, not systemd"),
    ("svc.dcgm-profiling-lock", busy("7 nv-hostengine", "9 dcgm-exporter", root=False), "only root"),
    ("svc.dcgm-profiling-lock", replace(WELL, unread={"busy": "did not answer within its limit"}), "busy was not read"),
    ("svc.mps", shared(mode("Prohibited"), MPS), "health.compute-mode"),
    ("svc.mps", gpu(health=GpuHealth()), "no compute mode"),
    ("svc.mps", replace(WELL, driver=replace(WELL.driver, mps=None)), "an older gpunode"),
    ("svc.mps", replace(WELL, root=False), "only root"),
    ("svc.restart-flap", replace(WELL, services={"docker.service": replace(RUNS, restarts=None)}), "counts no"),
    ("svc.restart-flap", replace(WELL, services={}, unread={"services": "exit code 1"}), "exit code 1"),
    ("svc.starts-at-boot", unit("docker.service", replace(BY_HAND, wanted_by=None)), "an older gpunode"),
    ("svc.starts-at-boot", replace(WELL, runtimes=()), "no unit of an engine or of a kubelet runs"),
    ("svc.starts-at-boot", replace(WELL, init="openrc"), "openrc, not systemd"),
    ("svc.starts-at-boot", replace(unit("kubelet.service", BY_HAND),
                                   kubernetes=KubernetesFacts(True, distribution="eks", joined=True)), "node of eks"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("lead", "remedy"),
    [("nvidia-open", "gpunode setup --only driver"),
     ("nvidia-headless-no-dkms-595-server-open", "gpunode setup --only driver --driver-source cuda")],
    ids=["NVIDIA's repository has it", "the archive has none"],
)  # fmt: skip
def test_nvlsm_is_sought_where_it_is(lead: str, remedy: str) -> None:
    there = PackageFacts("apt", {lead: PackageVersion(f"{h.V}-1")})
    found = outcome("svc.nvlsm", replace(NVLINK5, packages=there))
    assert isinstance(found, Finding)
    assert found.remedy.text == remedy


@pytest.mark.parametrize(("id", "host"), PASSES)
def test_what_is_well_passes(id: str, host: HostFacts) -> None:
    assert outcome(id, host) is None


@pytest.mark.parametrize(("id", "host", "quoted", "severity"), [pytest.param(*r, id=f"{r[0]}: {r[2]}") for r in FAULTS])
def test_a_fault_is_found_and_quoted(id: str, host: HostFacts, quoted: str, severity: Severity | None) -> None:
    found = outcome(id, host)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert (bool(found.remedy), found.severity) == (True, severity)


@pytest.mark.parametrize(("id", "host", "reason"), [pytest.param(*r, id=f"{r[0]}: {r[2]}") for r in UNKNOWN])
def test_what_is_not_known_is_no_pass(id: str, host: HostFacts, reason: str) -> None:
    told = outcome(id, host)
    assert isinstance(told, NotApplicable)
    assert reason in told.reason


@pytest.mark.parametrize("id", IDS)
def test_each_has_a_row_of_every_kind(id: str) -> None:
    assert all(any(row[0] == id for row in rows) for rows in (PASSES, FAULTS, UNKNOWN))
    assert isinstance(outcome(id, BARE), NotApplicable)


def test_a_fabric_manager_that_stopped_explains_what_the_gpus_wait_for() -> None:
    out = unit(FM, FAILED, gpu(fabric_state="In Progress", fabric_status=None))
    report = folded(run_all(out, None, load_catalog(), today=h.TODAY))
    found = {id: r.outcome for id, r in report.results.items() if isinstance(r.outcome, Finding)}
    assert {id: one.cause for id, one in found.items()} == {
        "svc.fabricmanager-active": None, "svc.fabric-state": "svc.fabricmanager-active",
    }  # fmt: skip
    assert found["svc.fabricmanager-active"].entities == entities.unit(FM)


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ("<bandwidth>Degraded</bandwidth><route_unhealthy>N/A</route_unhealthy>",
         {"bandwidth": "Degraded", "route_unhealthy": "N/A"}),
        ("<bandwidth>[Unknown Error]</bandwidth><summary></summary><a><b>c</b></a>", {}),
        ("", {}),
    ],
    ids=["words", "no words", "none"],
)  # fmt: skip
def test_the_fabrics_health_is_read_field_by_field(fields: str, known: dict[str, str]) -> None:
    gpu = f'<gpu id="00000000:41:00.0"><fabric><state>Completed</state><health>{fields}</health></fabric></gpu>'
    smi = parse_smi(f"<nvidia_smi_log><driver_version>595.91.07</driver_version>{gpu}</nvidia_smi_log>", 0)
    assert dict(smi.gpus[0].fabric_health) == known
