"""What the kernel's log means: whose fault, whether it is past, what else it is part of, and what is done about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.catalog.xids import sxids, xids
from gpunode.checks import run_all
from gpunode.checks.log.seen import remedy_for
from gpunode.checks.pci import fallen
from gpunode.facts.kernel_log import parse_kernel_log
from gpunode.model.facts import HostFacts
from gpunode.model.kernel_log import AerCounters, KernelLog, LoggedAer, LoggedSxid, LoggedXid
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.remedy import RepairAction
from tests.checks import hosts as h
from tests.test_remedies import at_odds

GPU, OTHER = "0000:41:00", "0000:61:00"
NOW = 90_000  # seconds since boot, of the healthy host


def outcome(id: str, host: HostFacts) -> CheckOutcome:
    return run_all(host, None, load_catalog(), today=h.TODAY).results[id].outcome


def found(id: str, host: HostFacts) -> Finding:
    finding = outcome(id, host)
    assert isinstance(finding, Finding)
    return finding


def xid(code: int, address: str = GPU, last_s: int | None = NOW - 60, **more: str | int | bool) -> LoggedXid:
    return replace(LoggedXid(code, address, last_s=last_s), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "severity", "action", "says"),
    [
        (95, None, "reset-gpu", "0000:41:00.0 met Xid 95: a memory error could not be kept to one program"),
        (79, None, "reboot", "0000:41:00.0 met Xid 79: the GPU does not answer on the PCIe bus"),
        (119, None, "reset-gpu", "0000:41:00.0 met Xid 119: the GPU's firmware (GSP) did not answer the driver"),
        (54, None, "replace", "has no auxiliary power"),
        (13, Severity.WARNING, "none", "a program on 0000:41:00.0 met Xid 13: "),
        (31, Severity.WARNING, "none", "a program on 0000:41:00.0 met Xid 31: "),
        (61, Severity.WARNING, "support", "NVIDIA's catalogue does not have this number"),
    ],
)
def test_an_xid_is_judged_by_the_catalogue(code: int, severity: Severity | None, action: str, says: str) -> None:
    finding = found("health.xid-recent", h.log(xids=(xid(code),)))
    assert (finding.severity, finding.remedy.action.value) == (severity, action)
    assert says in finding.summary


@pytest.mark.parametrize("code", [43, 45, 63, 154, 149])
def test_what_the_catalogue_asks_nothing_for_is_no_finding(code: int) -> None:
    assert outcome("health.xid-recent", h.log(xids=(xid(code),))) is None


def test_of_one_gpu_the_worst_counts_and_the_worst_gpu_comes_first() -> None:
    finding = found("health.xid-recent", h.log(xids=(xid(31), xid(95), xid(13, OTHER), xid(45))))
    assert finding.summary.count("met Xid") == 2
    assert finding.summary.startswith("0000:41:00.0 met Xid 95")
    assert finding.summary.endswith("an access out of bounds")
    assert finding.remedy.text.startswith("stop all that runs on it, then nvidia-smi --gpu-reset -i 0000:41:00.0;")


@pytest.mark.parametrize(
    ("last_s", "loaded_s", "recovery", "severity"),
    [
        (NOW - 60, None, None, None),
        (None, None, None, None),
        (NOW - 60, NOW - 70, None, None),
        (NOW - 60, NOW - 50, None, Severity.WARNING),
        (NOW - 25 * 3600, None, None, Severity.WARNING),
        (NOW - 60, None, "None", Severity.WARNING),
        (NOW - 60, None, "Reboot", None),
    ],
    ids=["fresh", "no times", "after the driver was loaded", "before it", "a day old", "recovered", "needs a reboot"],
)  # fmt: skip
def test_what_is_past_is_a_warning(
    last_s: int | None, loaded_s: int | None, recovery: str | None, severity: Severity | None
) -> None:
    told = (xid(154, last_s=last_s, recovery=recovery),) if recovery else ()
    finding = found("health.xid-recent", h.log(xids=(xid(95, last_s=last_s), *told), driver_since_s=loaded_s))
    assert finding.severity is severity
    asked = RepairAction.REBOOT if recovery == "Reboot" else RepairAction.RESET_GPU
    assert finding.remedy.action is asked


def test_a_programs_fault_is_forgotten_once_the_driver_was_loaded_again() -> None:
    assert outcome("health.xid-recent", h.log(xids=(xid(13),), driver_since_s=NOW)) is None


@pytest.mark.parametrize(
    ("host", "where"),
    [
        (h.gpu(config_head="ffffffff"), "pci.fallen-off-bus"),
        (h.smi(SmiGpu(0, h.GPU.address, "H100", recovery="Reset")), "health.recovery-action"),
        (h.smi(SmiGpu(0, h.GPU.address, "H100", reset_flags=("reset_required",))), "health.reset-required"),
        (h.smi(SmiGpu(0, h.GPU.address, "H100", fault="lost", fault_fields=("uuid: GPU is lost",))), "health.gpu-lost"),
    ],
)
def test_an_xid_that_is_part_of_another_finding_is_not_a_second_one(host: HostFacts, where: str) -> None:
    sick = replace(host, log=KernelLog((xid(79), xid(154, recovery="Reset"))))
    for id in ("health.xid-recent", "health.xid-extended"):
        result = outcome(id, sick)
        if result is not None:
            assert isinstance(result, NotApplicable)
            assert where in result.reason
    assert isinstance(outcome("health.xid-recent", sick), NotApplicable)


FAULTS = (
    ("pci.fallen-off-bus", "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', GPU has fallen off the bus."),
    ("drv.rm-init", "NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x22:0x56:884)"),
    ("drv.gsp-firmware", "nvidia 0000:41:00.0: Direct firmware load for nvidia/595.91.07/gsp_ga10x.bin failed with -2"),
)
LOADED = "[89900.100000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build"


def kernel_says(*lines: str) -> HostFacts:
    host = h.driver(kernel_log=lines)
    return replace(host, log=parse_kernel_log("\n".join(lines)))


@pytest.mark.parametrize(("id", "line"), FAULTS)
def test_a_fault_from_before_the_driver_was_loaded_again_is_over(id: str, line: str) -> None:
    assert outcome(id, kernel_says(f"[89006.100000] {line}", LOADED)) is None
    assert found(id, kernel_says(LOADED, f"[89905.100000] {line}"))
    assert found(id, kernel_says(f"[89006.100000] {line}"))


def test_a_gpu_that_still_does_not_answer_is_off_the_bus_however_often_the_driver_was_loaded() -> None:
    host = kernel_says(f"[89006.100000] {FAULTS[0][1]}", LOADED)
    assert found("pci.fallen-off-bus", replace(host, pci=h.gpu(config_head="ffffffff").pci))


@pytest.mark.parametrize(("id", "line"), FAULTS[:2])
def test_a_gpu_that_the_bus_has_no_more_is_one_that_the_finding_is_about(id: str, line: str) -> None:
    away = line.replace("0000:41:00", OTHER)
    finding = found(id, kernel_says(f"[89006.100000] {line}", f"[89007.100000] {away}"))
    assert [entity.name for entity in finding.entities] == [h.GPU.address, f"{OTHER}.0"]
    told = f"[89008.100000] NVRM: Xid (PCI:0000:41:00): 79, name={OTHER}.0, GPU has fallen off the bus."
    assert fallen(kernel_says(told)) == (h.GPU.address,)


def test_a_fault_that_is_over_does_not_explain_a_new_one() -> None:
    new = "[89905.100000] NVRM: Xid (PCI:0000:41:00): 95, pid=4120, name=python3, Uncontained: FBHUB. RST: Yes"
    finding = found("health.xid-recent", kernel_says(f"[89006.100000] {FAULTS[0][1]}", LOADED, new))
    assert finding.summary.startswith("0000:41:00.0 met Xid 95")


def test_a_driver_in_a_container_has_the_same_gpus_and_no_nvidia_smi_on_the_host() -> None:
    sick = h.log(xids=(xid(95),))
    finding = found("health.xid-recent", replace(sick, driver=replace(sick.driver, container=True)))
    assert "nvidia-smi --gpu-reset" not in finding.remedy.text
    assert finding.remedy.action is RepairAction.REBOOT


@pytest.mark.parametrize("action", sorted({row.action for row in (*xids().values(), *sxids().values())}))
def test_what_the_catalogue_asks_for_is_said_in_words_that_fit_it(action: RepairAction) -> None:
    assert at_odds(remedy_for(h.READY, action, h.GPU.address)) == []
    assert remedy_for(h.READY, action, h.GPU.address).action is action


@pytest.mark.parametrize("id", ["health.xid-recent", "health.sxid", "drv.taint", "health.hang-detector"])
@pytest.mark.parametrize("host", [h.host(platform="container"), h.gpu(driver="vfio-pci")])
def test_the_log_of_another_kernel_tells_nothing(id: str, host: HostFacts) -> None:
    assert isinstance(outcome(id, host), NotApplicable)


def test_the_recovery_that_the_driver_names_is_a_finding_of_its_own_only_without_an_xid_that_explains_it() -> None:
    told = xid(154, recovery="Drain P2P")
    assert found("health.xid-extended", h.log(xids=(told,))).remedy.action is RepairAction.WAIT
    assert outcome("health.xid-extended", h.log(xids=(xid(95), told))) is None
    assert outcome("health.xid-extended", h.log(xids=(replace(told, recovery="None"),))) is None


@pytest.mark.parametrize(
    ("fatal", "link", "severity", "says"),
    [
        (True, 9, None, "0000:41:00.0 met Xid 149: NVLink 9 failed, which is fatal"),
        (True, None, None, "0000:41:00.0 met Xid 149: NVLink failed, which is fatal"),
        (None, None, Severity.WARNING, "it says itself how bad it is, in a form that is not known here"),
    ],
)
def test_an_nvlink_5_error_counts_by_what_it_says(
    fatal: bool | None, link: int | None, severity: Severity | None, says: str
) -> None:
    finding = found("health.xid-extended", h.log(xids=(replace(xid(149), fatal=fatal, link=link),)))
    assert finding.severity is severity
    assert says in finding.summary


def test_an_nvlink_5_error_that_is_not_fatal_is_none() -> None:
    assert outcome("health.xid-extended", h.log(xids=(replace(xid(149), fatal=False, link=9),))) is None


@pytest.mark.parametrize("id", ["health.xid-recent", "health.xid-extended", "health.sxid", "health.mce", "drv.rm-init"])
def test_finding_nothing_in_a_log_whose_beginning_is_gone_proves_nothing(id: str) -> None:
    short = outcome(id, h.log(begins_s=NOW - 3600))
    assert isinstance(short, NotApplicable)
    assert f"begins {NOW - 3600} s after boot" in short.reason
    assert outcome(id, h.log(begins_s=600)) is None, "a day of it is there"


def test_what_such_a_log_shows_counts() -> None:
    assert isinstance(outcome("health.xid-recent", h.log(begins_s=NOW - 3600, xids=(xid(95),))), Finding)


@pytest.mark.parametrize(
    ("code", "fatal", "severity", "action"),
    [
        (20034, True, None, "reset-gpu"),
        (23001, True, None, "reboot"),
        (20009, False, Severity.WARNING, "support"),
        (20034, None, None, "reset-gpu"),
        (99999, True, None, "reset-gpu"),
        (99999, False, Severity.WARNING, "support"),
    ],
)
def test_a_switchs_error_is_as_bad_as_its_line_says(
    code: int, fatal: bool | None, severity: Severity | None, action: str
) -> None:
    finding = found("health.sxid", h.log(sxids=(LoggedSxid(code, "0000:07:00.0", fatal=fatal, link=30),)))
    assert (finding.severity, finding.remedy.action.value) == (severity, action)
    assert "link 30" in finding.summary


def test_a_corrected_error_of_a_switch_is_no_finding() -> None:
    assert outcome("health.sxid", h.log(sxids=(LoggedSxid(11012, "0000:07:00.0", fatal=False),))) is None


def test_a_task_that_hangs_in_the_driver_is_an_error_where_nvidia_smi_does_not_answer_either() -> None:
    hangs = h.log(hung_tasks=1, hung_in_driver=1)
    assert found("health.hang-detector", hangs).severity is None
    silent = replace(hangs, driver=replace(hangs.driver, smi=SmiFacts(124)))
    assert found("health.hang-detector", silent).severity is Severity.ERROR
    assert outcome("health.hang-detector", h.log(hung_tasks=3)) is None


@pytest.mark.parametrize(
    ("corrected", "lost", "lines", "taint", "severity"),
    [
        (0, 0, 0, 0, "passes"),
        (4, 0, 2, 0, "passes"),
        (0, 0, 2, 0, Severity.WARNING),
        (101, 0, 0, 0, Severity.WARNING),
        (4, 0, 0, 16, Severity.WARNING),
        (None, None, 1, 0, Severity.WARNING),
        (4, 1, 0, 0, None),
    ],
)
def test_errors_of_the_hosts_memory(
    corrected: int | None, lost: int | None, lines: int, taint: int, severity: Severity | str | None
) -> None:
    host = h.kernel_state(memory_corrected=corrected, memory_uncorrected=lost, taint=taint)
    result = outcome("health.mce", replace(host, log=KernelLog(machine_checks=lines)))
    assert (result.severity if isinstance(result, Finding) else "passes") == severity


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("{1}[Hardware Error]: event severity: corrected", "passes"),
        ("{1}[Hardware Error]: event severity: recoverable", Severity.WARNING),
        ("{1}[Hardware Error]: event severity: fatal", Severity.WARNING),
        ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00004000010090", "passes"),
        ("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: bd80000000100134", Severity.WARNING),
        ("[Hardware Error]: Corrected error, no action required.", "passes"),
        ("[Hardware Error]: Uncorrected, software containable error.", Severity.WARNING),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0", Severity.WARNING),
    ],
)
def test_memory_that_corrected_a_few_errors_excuses_none_that_was_not_corrected(
    line: str, severity: Severity | str
) -> None:
    text = f"[ 81000.100000] {line}"
    host = h.kernel_state(memory_corrected=4, memory_uncorrected=0)
    sick = replace(host, log=parse_kernel_log(text), driver=replace(host.driver, kernel_log=(text,)))
    result = outcome("health.mce", sick)
    assert (result.severity if isinstance(result, Finding) else "passes") == severity
    assert not isinstance(result, Finding) or "1 of an error that was not corrected" in result.evidence


@pytest.mark.parametrize(
    ("counters", "severity"),
    [
        (AerCounters(1000, 0, 0), "passes"),
        (AerCounters(1001, 0, 0), Severity.WARNING),
        (AerCounters(0, 1, 0), Severity.WARNING),
        (AerCounters(0, 0, 1), None),
        (AerCounters(), "unknown"),
    ],
)
def test_pcie_errors(counters: AerCounters, severity: Severity | str | None) -> None:
    result = outcome("pci.aer-errors", h.kernel_state(aer={h.GPU.address: counters}))
    assert (result.severity if isinstance(result, Finding) else "unknown" if result else "passes") == severity


def test_pcie_errors_of_a_kernel_without_counters_are_taken_from_its_log() -> None:
    host = replace(h.log(aer=(LoggedAer(h.GPU.address, "fatal", 2),)), kernel_state=None)
    assert found("pci.aer-errors", host).evidence == "0000:41:00.0 since boot: 2 fatal"


def test_of_counters_and_log_the_higher_number_counts_of_each_kind() -> None:
    logged = tuple(LoggedAer(h.GPU.address, how, count) for how, count in (("fatal", 3), ("nonfatal", 1)))
    host = replace(h.kernel_state(aer={h.GPU.address: AerCounters(3, 2, 0)}), log=KernelLog(aer=logged))
    finding = found("pci.aer-errors", host)
    assert finding.evidence == "0000:41:00.0 since boot: 3 fatal, 2 not fatal, 3 corrected"
    assert finding.severity is None


@pytest.mark.parametrize("taint", [0, 1, 4096, 8192, 12289])
def test_modules_of_others_are_no_fault(taint: int) -> None:
    assert outcome("drv.taint", h.kernel_state(taint=taint)) is None
