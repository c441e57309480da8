"""One sick GPU is one finding, in the words of nvidia-smi and with its own remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.causes import folded
from gpunode.facts.collect import collect
from gpunode.model.entities import EntityKind
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_health import GpuHealth
from gpunode.model.report import Finding, Severity
from gpunode.model.smi import SmiGpu
from gpunode.remedy import RepairAction
from gpunode.render.detect_text import detect_text
from gpunode.transport.recorded import Recorded
from tests.checks import gpu_faults
from tests.checks import hosts as h

SEEN = tuple(row[:2] for row in gpu_faults.FAULTS if row[0].startswith(("health.", "mig.")))
EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"

OTHER = replace(h.GPU, address="0000:61:00.0")
WELL = replace(h.SEEN, uuid="GPU-1")
SICK = replace(h.SEEN, index=1, pci_address=OTHER.address, uuid="GPU-2")


def two(sick: SmiGpu, code: int = 0) -> HostFacts:
    seen = h.smi(WELL, sick, code=code)
    driver = replace(seen.driver, gpus=(h.GPU.address, OTHER.address))
    nodes = (*h.READY.devices, replace(h.READY.devices[0], path="/dev/nvidia1", minor=1))
    return replace(seen, pci=(h.GPU, OTHER, *h.PASSED_ON[:6], *h.SWITCHES), driver=driver, devices=nodes)


def findings(host: HostFacts) -> dict[str, Finding]:
    """Causes alone: what they explain is part of them."""
    results = folded(run_all(host, None, load_catalog())).results
    return {id: r.outcome for id, r in results.items() if isinstance(r.outcome, Finding) and r.outcome.cause is None}


@pytest.mark.parametrize(
    ("sick", "id", "summary", "action"),
    [
        (replace(SICK, uuid=None, fault="lost", fault_fields=("uuid: GPU is lost",)),
         "health.gpu-lost", "0000:61:00.0 is lost", RepairAction.POWER_CYCLE),
        (replace(SICK, fault="reset-required", fault_fields=("pstate: GPU requires reset",), recovery="Reset"),
         "health.recovery-action", "0000:61:00.0 asks for a reset", RepairAction.RESET_GPU),
        (replace(SICK, fault="reset-required", fault_fields=("pstate: GPU requires reset",), recovery=None),
         "health.reset-required", "0000:61:00.0 requires a reset", RepairAction.RESET_GPU),
        (replace(SICK, reset_flags=("drain_and_reset_recommended",), recovery=None),
         "health.reset-required", "0000:61:00.0 should be drained and reset", RepairAction.RESET_GPU),
        (replace(SICK, recovery="Reboot"),
         "health.recovery-action", "0000:61:00.0 asks for a reboot of the node", RepairAction.REBOOT),
        (replace(SICK, fault="error", fault_fields=("temperature/gpu_temp: ERR!", "fan_speed: ERR!")),
         "health.readable", "cannot read fan_speed of 0000:61:00.0", RepairAction.RESET_GPU),
        (replace(SICK, fault="error", fault_fields=("temperature/gpu_temp: ERR!",)),
         "health.power-readable", "cannot read temperature of 0000:61:00.0", RepairAction.RESET_GPU),
    ],
    ids=["lost", "asks for a reset", "requires a reset", "should be reset", "reboot", "errors", "a sensor"],
)  # fmt: skip
@pytest.mark.parametrize("code", [0, 15])
def test_one_sick_gpu_is_one_finding(sick: SmiGpu, id: str, summary: str, action: RepairAction, code: int) -> None:
    found = findings(two(sick, code if sick.fault == "lost" else 0))
    assert list(found) == [id]
    assert summary in found[id].summary
    assert h.GPU.address not in found[id].summary
    assert found[id].remedy.action is action


def test_a_reset_names_the_gpu_that_needs_it() -> None:
    found = findings(two(replace(SICK, recovery="Reset")))["health.recovery-action"]
    assert "nvidia-smi --gpu-reset -i 0000:61:00.0" in found.remedy.text


def test_the_heaviest_recovery_decides() -> None:
    seen = h.smi(replace(WELL, recovery="Drain and Reset"), replace(SICK, recovery="Reboot"))
    found = findings(seen)["health.recovery-action"]
    assert found.remedy.action is RepairAction.REBOOT
    assert found.summary == "0000:41:00.0 asks for Drain and Reset; 0000:61:00.0 asks for a reboot of the node"


@pytest.mark.parametrize(
    ("fields", "id", "severity"),
    [
        (("fan_speed: ERR!",), "health.readable", Severity.WARNING),
        (("pci/tx_util: ERR!", "pci/rx_util: ERR!"), "health.readable", Severity.WARNING),
        (("fan_speed: ERR!", "pci/tx_util: ERR!"), "health.readable", None),
        (("fan_speed: ERR!", "gpu_power_readings/instant_power_draw: ERR!"), "health.readable", None),
        (("gpu_power_readings/instant_power_draw: ERR!", "module_power_readings/x: ERR!"),
         "health.power-readable", None),
    ],
    ids=["one part", "one part, two fields", "two", "a part and a sensor", "a sensor"],
)  # fmt: skip
def test_one_broken_part_is_a_warning_and_a_gpu_that_hangs_or_has_no_sensor_an_error(
    fields: tuple[str, ...], id: str, severity: Severity | None
) -> None:
    (found,) = findings(two(replace(SICK, fault="error", fault_fields=fields))).items()
    assert (found[0], found[1].severity) == (id, severity)


def test_a_gpu_that_is_lost_because_it_fell_off_the_bus_is_one_finding() -> None:
    host = two(replace(SICK, uuid=None, fault="lost", fault_fields=("uuid: GPU is lost",)), 15)
    xid = "NVRM: Xid (PCI:0000:61:00): 79, pid=0, GPU has fallen off the bus."
    found = findings(replace(host, driver=replace(host.driver, kernel_log=(xid,))))
    assert list(found) == ["pci.fallen-off-bus"]
    assert found["pci.fallen-off-bus"].summary == "0000:61:00.0 has fallen off the bus"


def test_a_gpu_that_nvidia_smi_leaves_out_is_missed_whatever_its_exit_code() -> None:
    host = two(SICK)
    without = h.smi(WELL, code=14).driver.smi
    found = findings(replace(host, driver=replace(host.driver, smi=without)))
    assert OTHER.address in found["pci.count-vs-driver"].evidence


@pytest.mark.parametrize(
    ("owned", "severity"),
    [((WELL.pci_address, OTHER.address), Severity.WARNING), ((WELL.pci_address,), None)],
    ids=["may be the one that an option leaves out", "an option leaves none out of /proc"],
)
def test_an_option_does_not_explain_a_gpu_that_failed(owned: tuple[str, ...], severity: Severity | None) -> None:
    host = two(SICK)
    params = {"ExcludedGpus": "GPU-0badc0de-0000-0000-0000-000000000000"}
    found = findings(replace(host, driver=replace(host.driver, gpus=owned, params=params, smi=h.smi(WELL).driver.smi)))
    assert found["pci.count-vs-driver"].severity is severity
    assert [entity.name for entity in found["pci.count-vs-driver"].entities] == [OTHER.address]


@pytest.mark.parametrize(
    ("slug", "ids", "shown"),
    [
        (
            "ubuntu2404-lost-h100",
            {"pci.fallen-off-bus"},
            ("7 × ", "1 × ", ", lost, driver nvidia", "7 of 8 GPUs, CUDA 13.2"),
        ),
        ("rocky9-reset-required-a100", {"health.recovery-action"}, ("3 × ", "1 × ", "requires a reset", "for 4 GPUs")),
        ("debian12-err-a100", {"health.readable"}, ("3 × ", "1 × ", "with unreadable fields", "for 4 GPUs, CUDA 13.2")),
        ("ubuntu2404-driver610-l40s", set(), ("4 × ", "610.57.04 loaded", "for 4 GPUs, CUDA 13.3")),
    ],
)
def test_on_a_sample_host_the_healthy_gpus_stay_and_the_sick_one_is_a_finding(
    slug: str, ids: set[str], shown: tuple[str, ...]
) -> None:
    host = collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug))
    found = {id for id in findings(host) if id.startswith(("health.", "pci.", "user.", "dev."))}
    assert found == ids
    text = " ".join(detect_text(host).split())
    assert all(words in text for words in shown)
    assert "Deprecated" not in text


@pytest.mark.parametrize(
    ("id", "host"), [pytest.param(*row, id=f"{row[0]}, {n}") for n, row in enumerate(gpu_faults.PASSES)]
)
def test_what_is_repaired_or_usual_or_of_a_gpu_that_says_nothing_is_no_fault(id: str, host: HostFacts) -> None:
    assert run_all(host, None, load_catalog()).results[id].outcome is None


@pytest.mark.parametrize(
    ("sick", "action", "words"),
    [
        (gpu_faults.repairs(rows_pending=True), RepairAction.RESET_GPU, "nvidia-smi --gpu-reset -i 0000:41:00.0"),
        (gpu_faults.repairs(rows_failed=True), RepairAction.REPLACE, "RMA"),
        (gpu_faults.errors(dram_uncorrectable=1), RepairAction.RESET_GPU, "its results are lost"),
        (gpu_faults.errors(sram_threshold_exceeded=True), RepairAction.REPLACE, "RMA"),
        (gpu_faults.errors(unrepairable=True), RepairAction.REPLACE, "RMA"),
    ],
)
def test_a_fault_of_memory_is_one_finding_with_what_nvidia_says_to_do(
    sick: HostFacts, action: RepairAction, words: str
) -> None:
    (found,) = findings(sick).values()
    assert found.remedy.action is action
    assert words in found.remedy.text


@pytest.mark.parametrize("off", [0, 1])
def test_ecc_is_switched_on_where_it_is_off(off: int) -> None:
    gpus = [replace(gpu, health=GpuHealth()) for gpu in (WELL, SICK, replace(WELL, index=2, pci_address=""))]
    gpus[off] = replace(gpus[off], ecc_mode="Disabled")
    found = findings(h.smi(*gpus))["health.ecc-mode"]
    assert f"nvidia-smi -i {gpus[off].pci_address} -e 1" in found.remedy.text


def test_ecc_modes_that_nobody_knows_are_told_without_a_traceback() -> None:
    odd = h.smi(replace(WELL, ecc_mode="Sometimes", health=GpuHealth()), replace(SICK, health=GpuHealth()))
    assert "not the same" in findings(odd)["health.ecc-mode"].summary


def test_a_memory_error_whose_page_waits_to_be_retired_is_one_finding() -> None:
    hit = h.seen("repairs", h.seen("errors", dram_uncorrectable=1), pages_pending=True)
    assert list(findings(h.smi(hit))) == ["health.retired-pages"]


@pytest.mark.parametrize(("id", "host"), SEEN, ids=[f"{id} {n}" for n, (id, _) in enumerate(SEEN)])
def test_what_is_wrong_with_a_gpu_names_it_to_a_program(id: str, host: HostFacts) -> None:
    named = [entity.name for entity in findings(host)[id].entities if entity.kind is EntityKind.PCI]
    assert named
    assert set(named) <= {gpu.pci_address for gpu in host.driver.smi.gpus} if host.driver.smi else not named


@pytest.mark.parametrize(
    ("healthy", "sick", "id"),
    [
        ("remapped_row_pending>No<", "remapped_row_pending>Yes<", "health.row-remap-pending"),
        ("remapped_row_failure>No<", "remapped_row_failure>Yes<", "health.row-remap-failure"),
        ("dram_uncorrectable>0<", "dram_uncorrectable>1<", "health.ecc-volatile-unc"),
        ("sram_uncorrectable_parity>0<", "sram_uncorrectable_parity>1<", "health.ecc-volatile-unc"),
        ("sram_threshold_exceeded>No<", "sram_threshold_exceeded>Yes<", "health.ecc-aggregate-unc"),
        ("pending_ecc>Enabled<", "pending_ecc>Disabled<", "health.ecc-mode"),
        ("hw_thermal_slowdown>Not Active<", "hw_thermal_slowdown>Active<", "health.clock-hw-slowdown"),
        ("sw_thermal_slowdown>Not Active<", "sw_thermal_slowdown>Active<", "health.clock-sw"),
        ("<compute_mode>Default<", "<compute_mode>Prohibited<", "health.compute-mode"),
        ("replay_counter>0<", "replay_counter>5000<", "health.pcie-replay"),
        ("<used>0 MiB<", "<used>9000 MiB<", "health.leftover-memory"),
    ],
)
def test_a_word_of_the_recording_is_one_finding_more(healthy: str, sick: str, id: str) -> None:
    text = (EXAMPLES / "debian12-ready" / "facts.txt").read_text()
    assert healthy in text
    before, after = (
        set(findings(collect(Recorded(recorded.encode(), "ready"))))
        for recorded in (text, text.replace(healthy, sick, 1))
    )
    assert after - before == {id}
    assert before <= after
