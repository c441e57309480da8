"""What GPUs computed in active tests, judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.active import ActiveFacts, ActiveTests, CudaFacts, CudaGpu, DcgmFacts, DcgmResult
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiFacts
from gpunode.model.spec import Spec
from gpunode.remedy import RepairAction
from tests.checks import hosts as h

AT = h.GPU.address
WELL = CudaGpu(AT, "ok", 64 << 20)
CONFIG = DcgmResult("software", "GPU 0", "fail", ("Persistence mode is off",), frozenset({5}))
PASSED = DcgmResult("software", "GPU 0", "pass")


def cuda(*gpus: CudaGpu, unknown: str = "") -> HostFacts:
    return h.host(active=ActiveFacts(ActiveTests(cuda=True), cuda=CudaFacts(gpus, len(gpus), unknown)))


def dcgm(*results: DcgmResult, unknown: str = "") -> HostFacts:
    return h.host(active=ActiveFacts(ActiveTests(dcgm=1), dcgm=DcgmFacts(1, results, unknown)))


def outcome(id: str, host: HostFacts) -> CheckOutcome:
    return run_all(host, Spec(), load_catalog(), today=h.TODAY).results[id].outcome


@pytest.mark.parametrize(
    ("id", "host", "quoted", "action"),
    [
        ("smoke.cuda", cuda(CudaGpu(AT, "wrong 1 of 9", 1)), f"{AT}: sums wrong 1 of 9", RepairAction.REPLACE),
        ("smoke.cuda", cuda(CudaGpu("", failed="cuInit: X (802)", code=802)), "libcuda: cuInit: X (802)",
         RepairAction.RESTART_SERVICE),
        ("smoke.cuda", cuda(WELL, CudaGpu(AT, failed="cuInit: X (803)", code=803)), "X (803)", RepairAction.REBOOT),
        ("smoke.cuda", cuda(CudaGpu(AT, failed="cuCtxSynchronize: X (719)", code=719), unknown="it ended early"),
         "X (719)", RepairAction.SUPPORT),
        ("health.smoke-memtest", cuda(CudaGpu(AT, "ok", 64 << 20, 2)), "2 of 3 patterns (64 MiB", RepairAction.REPLACE),
        ("smoke.dcgm", dcgm(PASSED, DcgmResult("memory", "GPU 0", "fail", ("DBE",))), "memory (GPU 0): fail, DBE",
         RepairAction.SUPPORT),
        ("smoke.dcgm", dcgm(PASSED, CONFIG), "software (GPU 0): fail, Persistence", RepairAction.CONFIGURE),
        ("smoke.dcgm", dcgm(PASSED, DcgmResult("pcie", "", "warn")), "pcie: warn", RepairAction.CONFIGURE),
    ],
)  # fmt: skip
def test_a_fault_is_found_quoted_and_given_a_remedy(
    id: str, host: HostFacts, quoted: str, action: RepairAction
) -> None:
    found = outcome(id, host)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert found.remedy.action is action


def test_a_setting_that_dcgm_wants_otherwise_is_no_fault_of_a_gpu() -> None:
    found = outcome("smoke.dcgm", dcgm(PASSED, CONFIG))
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("id", "host"),
    [("smoke.cuda", cuda(WELL)), ("health.smoke-memtest", cuda(WELL)), ("smoke.dcgm", dcgm(PASSED))],
)
def test_what_is_well_passes(id: str, host: HostFacts) -> None:
    assert outcome(id, host) is None


@pytest.mark.parametrize(
    ("id", "host", "reason"),
    [
        ("smoke.cuda", h.READY, "not asked for: --cuda"),
        ("health.smoke-memtest", h.READY, "not asked for: --cuda"),
        ("smoke.dcgm", h.READY, "not asked for: --dcgm"),
        ("smoke.cuda", cuda(unknown="there is no python3"), "there is no python3"),
        ("smoke.cuda", cuda(WELL, unknown="it ended early"), "it ended early"),
        ("smoke.cuda", cuda(), "no device"),
        ("smoke.cuda", cuda(CudaGpu(AT, failed="cuModuleLoadData: X (218)", code=218)), "does not compile"),
        ("health.smoke-memtest", cuda(CudaGpu(AT, failed="cuInit: X (802)")), "was tested (smoke.cuda)"),
        ("health.smoke-memtest", cuda(), "no memory of any GPU"),
        ("smoke.dcgm", dcgm(unknown="dcgmi is not installed"), "not installed"),
        ("smoke.dcgm", dcgm(DcgmResult("pcie", "GPU 0", "skip")), "skipped"),
    ],
)
def test_what_was_not_computed_is_never_a_pass(id: str, host: HostFacts, reason: str) -> None:
    found = outcome(id, host)
    assert isinstance(found, NotApplicable)
    assert reason in found.reason


SECOND = "0000:61:00.0"


def one_of_two(host: HostFacts) -> HostFacts:
    """Of its two GPUs libcuda offers the first."""
    both = (h.GPU, replace(h.GPU, address=SECOND))
    return replace(host, pci=(*both, *h.SWITCHES), active=cuda(WELL).active)


def owned(*addresses: str, mig: str = "Disabled", **params: str) -> HostFacts:
    """The driver has these GPUs."""
    gpus = tuple(replace(h.SEEN, index=n, pci_address=a, mig_mode=mig) for n, a in enumerate(addresses))
    return h.driver(gpus=addresses, smi=SmiFacts(0, gpus=gpus), params=params)


def test_a_gpu_that_libcuda_does_not_offer_is_a_finding() -> None:
    found = outcome("smoke.cuda", one_of_two(owned(AT, SECOND)))
    assert isinstance(found, Finding)
    assert found.summary == f"CUDA does not see {SECOND}"
    assert [entity.name for entity in found.entities] == [SECOND]


@pytest.mark.parametrize(
    ("id", "host", "reason"),
    [
        ("smoke.cuda", owned(AT, SECOND, mig="Enabled"), "with MIG, libcuda offers a process one instance"),
        ("smoke.cuda", owned(AT), "pci.count-vs-driver"),
        ("health.smoke-memtest", owned(AT, SECOND), f"no memory of {SECOND} was tested"),
    ],
)
def test_a_gpu_that_was_not_tested_is_never_a_pass(id: str, host: HostFacts, reason: str) -> None:
    found = outcome(id, one_of_two(host))
    assert isinstance(found, NotApplicable)
    assert reason in found.reason


@pytest.mark.parametrize("id", ["smoke.cuda", "health.smoke-memtest"])
def test_of_a_gpu_with_mig_only_one_instance_was_tested(id: str) -> None:
    found = outcome(id, replace(owned(AT, mig="Enabled"), active=cuda(WELL).active))
    assert isinstance(found, NotApplicable)
    assert "one instance" in found.reason


def test_a_gpu_that_an_option_leaves_out_is_none_for_cuda() -> None:
    option = {"ExcludedGpus": "GPU-0badc0de-0000-0000-0000-000000000000"}
    assert outcome("smoke.cuda", one_of_two(owned(AT, **option))) is None
