"""Rows of test_checks.py for what nvidia-smi says of a GPU: one fault each, and one reason for no verdict each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpunode.model.facts import HostFacts
from gpunode.model.gpu_health import GpuHealth, LinkErrors, MemoryErrors, MemoryRepairs, NvLinks
from gpunode.model.smi import SmiFacts, SmiGpu
from tests.checks import hosts as h

INFOROM = "WARNING: infoROM is corrupted at gpu 0000:41:00.0"
OTHER = h.seen(index=1, pci_address="0000:61:00.0")
NO_ECC = h.seen("", OTHER, name="A10", ecc_mode="Disabled", health=GpuHealth("Disabled"))
FEW_PAGES = GpuHealth(repairs=MemoryRepairs(pages_pending=False, pages_double_bit=1))
UNKNOWN = h.seen(ecc_mode=None, mig_mode=None, mig_pending=None, health=GpuHealth(), links=None)


LAPTOP = h.seen(name="NVIDIA GeForce RTX 4070 Laptop GPU")


def held(active: str, gpu: SmiGpu = h.SEEN) -> SmiGpu:
    """This reason holds its clocks down."""
    return h.seen("clocks", gpu, reasons={**h.HEALTH.clocks.reasons, active: True})


def clocks(active: str, gpu: SmiGpu = h.SEEN) -> HostFacts:
    return h.smi(held(active, gpu))


def also(part: str, /, **changes: Any) -> HostFacts:
    """The healthy GPU, and another with these changes."""
    return h.smi(h.SEEN, h.seen(part, OTHER, **changes))


def errors(**changes: Any) -> HostFacts:
    return h.smi(h.seen("errors", **changes))


def repairs(**changes: Any) -> HostFacts:
    return h.smi(h.seen("repairs", **changes))


def linked(*links: NvLinks | None, device: str = h.GPU.device) -> HostFacts:
    """GPUs of one NVLink board with these links."""
    places = tuple(f"0000:{n + 4}1:00.0" for n in range(len(links)))
    host = h.smi(*(h.seen(pci_address=a, links=one) for a, one in zip(places, links, strict=True)))
    return replace(host, pci=tuple(replace(h.GPU, address=a, device=device) for a in places))


def reaching(*rows: str, **of_second: Any) -> HostFacts:
    """GPUs of one NVLink board, of which nvidia-smi says so of each in turn: "X OK"."""
    host = linked(*(UP for _ in rows))
    assert host.driver.smi is not None
    seen = enumerate(zip(host.driver.smi.gpus, rows, strict=True))
    gpus = [replace(gpu, index=n, peers=tuple(row.split())) for n, (gpu, row) in seen]
    gpus[1] = replace(gpus[1], **of_second)
    return replace(host, driver=h.smi(*gpus).driver)


UP, DARK = NvLinks(18), NvLinks(0)
FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("health.nvlink-down", linked(UP, NvLinks(17, (4,))), "0000:51:00.0: 17 links up, 18 on its equals; inactive: 4"),
    ("health.nvlink-down", linked(DARK, DARK), "0000:41:00.0: 0 links up"),
    ("health.nvlink-errors", linked(UP, NvLinks(18, (), (LinkErrors(3, "Replay", 2353), LinkErrors(0, "CRC", 101)))),
     "0000:51:00.0: link 3: 2353 replay errors, link 0: 101 CRC errors"),
    ("health.p2p", reaching("X NS", "OK X"), "topo -p2p r, 0000:41:00.0 to 0000:51:00.0: NS (not supported)"),
    ("health.p2p", reaching("X OK CNS", "OK X CNS", "CNS CNS X"), "0000:41:00.0 to 0000:61:00.0: CNS (chipset not"),
    ("health.ecc-mode", h.smi(h.seen(health=GpuHealth("Disabled"))), "current_ecc Enabled, pending_ecc Disabled"),
    (
        "health.ecc-mode",
        h.smi(h.SEEN, h.seen("", OTHER, ecc_mode="Disabled", health=GpuHealth("Disabled"))),
        "0000:61:00.0: current_ecc Disabled",
    ),
    ("health.ecc-volatile-unc", errors(dram_uncorrectable=3), "3 in DRAM, 0 in SRAM"),
    ("health.ecc-volatile-unc", errors(sram_uncorrectable=1), "0 in DRAM, 1 in SRAM"),
    (
        "health.ecc-volatile-unc",
        h.smi(h.seen("repairs", h.seen("errors", sram_uncorrectable=1), rows_pending=True)),
        "1 in SRAM",
    ),
    ("health.ecc-aggregate-unc", errors(sram_threshold_exceeded=True), "sram_threshold_exceeded: Yes"),
    ("health.ecc-corrected", errors(dram_corrected=20_000_001), "20000001 in DRAM"),
    ("health.ecc-corrected", errors(sram_corrected=10_001), "10001 in SRAM"),
    ("health.row-remap-pending", repairs(rows_pending=True), "remapped_row_pending: Yes"),
    ("health.row-remap-failure", repairs(rows_failed=True), "remapped_row_failure: Yes"),
    ("health.row-remap-count", repairs(banks_none=1, banks_low=2), "none: 1 bank(s), row_remapper_histogram_low: 2"),
    ("health.row-remap-count", repairs(rows_uncorrectable=257), "remapped_row_unc: 257"),
    ("health.retired-pages", repairs(pages_pending=True), "pending: Yes"),
    ("health.retired-pages", repairs(pages_single_bit=40, pages_double_bit=20), "60; the limit is 60"),
    ("health.repair-flags", errors(unrepairable=True), "unrepairable_memory: Yes"),
    ("health.repair-flags", errors(channel_repair_pending=True), "channel_repair_pending: Yes"),
    ("health.repair-flags", errors(tpc_repair_pending=True, unrepairable=None), "tpc_repair_pending: Yes"),
    ("health.temp-gpu", h.smi(h.seen("temperatures", margin=-2)), "tlimit -2 C, gpu_temp_slow_tlimit_threshold -2 C"),
    ("health.temp-gpu", h.smi(h.seen("temperatures", slowdown_margin=None, gpu=90)), "gpu_temp_slow_threshold 90 C"),
    ("health.temp-memory", h.smi(h.seen("temperatures", memory=96)), "memory_temp 96 C"),
    ("health.clock-hw-slowdown", clocks("hw_thermal_slowdown"), "hw_thermal_slowdown Active"),
    ("health.clock-hw-slowdown", clocks("hw_power_brake_slowdown"), "hw_power_brake_slowdown Active"),
    ("health.clock-hw-slowdown", clocks("hw_thermal_slowdown", LAPTOP), "hw_thermal_slowdown Active"),
    ("health.clock-sw", clocks("sw_thermal_slowdown"), "sw_thermal_slowdown Active"),
    ("health.clock-counters", h.smi(h.seen("clocks", hw_thermal_us=61_000_000)), "61 s because of heat, 0 s"),
    ("health.clock-counters", h.smi(h.seen("clocks", hw_power_brake_us=60_000_000)), "60 s because of the power"),
    ("health.power-cap", h.smi(h.seen("power", limit=500.0)), "limit in force 500.0 W, requested 700.0 W"),
    ("health.power-cap", also("power", limit=500.0, requested=500.0), "0000:61:00.0: limit 500.0 W, default 700.0 W"),
    ("health.app-clocks", also("clocks", application_mhz=1200), "0000:61:00.0: 1200 MHz, default 1980 MHz"),
    ("health.inforom", h.smi(h.SEEN, code=14, message=INFOROM), INFOROM),
    ("health.vbios-uniform", also("board", vbios="96.00.30.00.01"), "96.00.30.00.01 on 0000:61:00.0"),
    ("health.pcie-replay", h.smi(h.seen("link", replays=1001)), "replay_counter 1001"),
    ("health.pcie-replay", h.smi(h.seen("link", rollovers=1)), "replay_rollover_counter 1"),
    ("pci.link-speed", h.smi(h.seen("link", generation=1)), "current_link_gen 1, max_link_gen 5, P0"),
    ("pci.link-speed", h.smi(h.seen("use", h.seen("link", generation=4), busy_percent=10)), "current_link_gen 4"),
    ("health.compute-mode", h.smi(h.seen("use", compute_mode="Prohibited")), "compute_mode: Prohibited"),
    ("health.leftover-memory", h.smi(h.seen("use", memory_used_bytes=501 << 20)), "501 MiB used, no processes"),
    ("mig.mode-pending", h.smi(h.seen(mig_pending="Enabled")), "current_mig Disabled, pending_mig Enabled"),
    (
        "mig.layout-vs-wanted",
        h.smi(h.seen("use", h.seen(mig_mode="Enabled"), mig_devices=0)),
        "current_mig Enabled, mig_devices None",
    ),
)  # fmt: skip

# Every check here: nvidia-smi lists no GPU, and one of which it says nothing; then reasons of their own.
IDS = tuple(dict.fromkeys(row[0] for row in FAULTS))
NOT_APPLICABLE: tuple[tuple[str, HostFacts, str], ...] = (
    *((id, h.driver(smi=SmiFacts(9, "no driver")), "did not list the GPUs") for id in IDS),
    *((id, h.smi(UNKNOWN), "nvidia-smi gives no ") for id in IDS if id != "health.inforom"),
    ("health.nvlink-down", linked(UP, NvLinks(0), device="20b5"), "NVLinks of an NVLink board"),
    ("health.p2p", reaching("X CNS", "CNS X", links=DARK), "does not say of two GPUs"),
    ("health.p2p", reaching("X CNS", "CNS X", mig_mode="Enabled"), "does not say of two GPUs"),
    ("health.p2p", reaching("X U", "U X"), "does not say of two GPUs"),
    ("health.p2p", reaching("", ""), "peers (asked for where there are several GPUs)"),
    ("health.p2p", linked(UP, UP, device="20b5"), "with NVLinks of a board that are up"),
    ("health.temp-memory", h.smi(h.seen("temperatures", memory_max=None)), "temperature of the memory with its limit"),
    (
        "health.temp-gpu",
        h.smi(h.seen("temperatures", slowdown=None, slowdown_margin=None, margin=-1)),
        "with its limit",
    ),
    (
        "health.clock-hw-slowdown",
        h.smi(h.seen("temperatures", held("hw_thermal_slowdown"), margin=-3)),
        "health.temp-gpu",
    ),
    (
        "health.clock-sw",
        h.smi(h.seen("temperatures", held("sw_thermal_slowdown"), margin=-3)),
        "health.temp-gpu",
    ),
    (
        "health.clock-counters",
        h.smi(h.seen("clocks", held("hw_power_brake_slowdown"), hw_power_brake_us=90_000_000)),
        "health.clock-hw-slowdown",
    ),
    ("health.clock-hw-slowdown", h.smi(h.seen("clocks", reasons={"hw_slowdown": True})), "reasons for its clocks"),
    ("mig.layout-vs-wanted", h.smi(h.seen(mig_mode="Enabled")), "MIG instances"),
    ("health.power-cap", h.smi(LAPTOP), "power limit"),
    ("health.power-cap", h.smi(h.seen("power", default=None)), "power limit"),
    ("pci.link-speed", h.smi(h.seen("link", generation_max=None)), "while it is at work"),
    ("pci.link-speed", h.smi(h.seen("clocks", h.seen("link", generation=1), state="P8")), "while it is at work"),
    ("pci.link-speed", h.smi(h.seen("use", h.seen("link", generation=1), busy_percent=9)), "while it is at work"),
    *(
        ("health.leftover-memory", h.smi(gpu), "use of its memory")
        for gpu in (
            h.seen(mig_mode="Enabled"),
            h.seen("use", virtualization="Host VGPU"),
            h.seen("use", processes=None),
            h.seen("use", memory_used_bytes=None),
        )
    ),
    (
        "health.ecc-volatile-unc",
        h.smi(h.seen("repairs", h.seen("errors", dram_uncorrectable=1), pages_pending=True)),
        "health.retired-pages",
    ),
)

# What is healthy, though a counter is not 0 or one of two GPUs says nothing.
PASSES: tuple[tuple[str, HostFacts], ...] = (
    ("health.p2p", reaching("X OK", "OK X")),
    ("health.nvlink-down", replace(linked(DARK, DARK), virtualization="QEMU")),
    ("health.nvlink-down", linked(UP, None)),
    ("health.nvlink-errors", linked(UP, NvLinks(18, (), (LinkErrors(3, "Replay", 100),)))),
    ("mig.mode-pending", h.smi(h.seen(mig_pending=None))),
    ("user.smi-works", h.smi(h.SEEN, code=14, message=INFOROM)),
    ("health.temp-gpu", h.smi(h.seen("temperatures", margin=-1))),
    ("health.temp-gpu", h.smi(h.seen("temperatures", margin=5, slowdown=None, slowdown_margin=None))),
    ("health.temp-gpu", h.smi(h.seen("temperatures", slowdown_margin=None, gpu=89))),
    ("health.temp-memory", h.smi(h.seen("temperatures", memory=95))),
    *(
        (id, clocks(name, gpu))
        for id, name, gpu in (
            ("health.clock-hw-slowdown", "hw_slowdown", h.SEEN),
            ("health.clock-hw-slowdown", "hw_power_brake_slowdown", LAPTOP),
            ("health.clock-hw-slowdown", "sw_power_cap", h.SEEN),
            ("health.clock-sw", "sw_power_cap", h.SEEN),
            ("health.clock-sw", "sw_thermal_slowdown", LAPTOP),
        )
    ),
    ("health.clock-counters", h.smi(h.seen("clocks", hw_thermal_us=59_999_999))),
    ("health.clock-counters", h.smi(h.seen("clocks", LAPTOP, hw_power_brake_us=90_000_000))),
    ("health.power-cap", h.smi(h.seen("power", limit=500.0, requested=500.0))),
    ("health.power-cap", h.smi(h.seen("power", limit=699.5))),
    ("health.power-cap", also("power", limit=450.0, requested=450.0, default=450.0)),
    ("health.app-clocks", h.smi(h.seen("clocks", application_mhz=1200))),
    ("health.vbios-uniform", h.smi(h.SEEN, h.seen("board", OTHER, part="other", vbios="1"))),
    ("health.vbios-uniform", h.smi(h.SEEN, h.seen("board", OTHER, part=None, vbios="1"))),
    ("health.pcie-replay", h.smi(h.seen("link", replays=1000, rollovers=None))),
    ("health.compute-mode", h.smi(h.seen("use", compute_mode="Exclusive_Process"))),
    ("health.leftover-memory", h.smi(h.seen("use", memory_used_bytes=500 << 20))),
    ("health.leftover-memory", h.smi(h.seen("use", memory_used_bytes=90 << 30, processes=1))),
    *((id, h.smi(h.SEEN, h.seen("", OTHER, health=GpuHealth()))) for id in IDS if id != "health.p2p"),
    ("health.ecc-mode", h.smi(h.seen(ecc_mode="Disabled", health=GpuHealth("Disabled")))),
    ("health.ecc-mode", h.smi(h.SEEN, NO_ECC)),
    ("health.ecc-corrected", errors(dram_corrected=20_000_000, sram_corrected=10_000)),
    ("health.row-remap-count", repairs(rows_uncorrectable=256)),
    ("health.row-remap-count", repairs(rows_uncorrectable=None)),
    ("health.row-remap-count", repairs(banks_low=None, banks_none=None)),
    ("pci.link-speed", h.smi(h.seen("clocks", state="P8"))),
    ("health.retired-pages", repairs(pages_single_bit=59)),
    ("health.repair-flags", h.smi(h.seen(health=GpuHealth(errors=MemoryErrors(unrepairable=False))))),
    ("health.retired-pages", h.smi(h.seen(health=FEW_PAGES))),
)  # fmt: skip
