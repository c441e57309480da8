"""How a GPU does, from its element of nvidia-smi's XML: counters, temperatures, clocks. Odd values are None."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from gpunode.facts.smi_fields import value
from gpunode.model.gpu_health import (
    Clocks,
    GpuBoard,
    GpuHealth,
    GpuUse,
    MemoryErrors,
    MemoryRepairs,
    PcieLink,
    PowerLimits,
    Temperatures,
)
from gpunode.regex import regex

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as _Element

_T = TypeVar("_T")
# "Clocks Throttle Reasons" were renamed in 535; some branches print both groups.
_REASONS = (
    ("clocks_event_reasons", "clocks_event_reason_"),
    ("clocks_throttle_reasons", "clocks_throttle_reason_"),
)
_NAME = regex("[a-z_]{1,40}")
_WATTS = regex(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) W", re.ASCII)
_LONGEST_NAME = 60


def health_of(gpu: _Element) -> GpuHealth:
    return GpuHealth(
        value(gpu, "ecc_mode/pending_ecc"),
        _errors(gpu),
        _repairs(gpu),
        _temperatures(gpu),
        _clocks(gpu),
        _power(gpu),
        _link(gpu),
        _use(gpu),
        GpuBoard(_short(value(gpu, "board_part_number")), _short(value(gpu, "vbios_version"))),
    )


def _errors(gpu: _Element) -> MemoryErrors:
    """Ampere and newer split SRAM's uncorrectable errors in two; Volta and older name the bits, with a total."""
    since, ever = "ecc_errors/volatile", "ecc_errors/aggregate"
    parts = [_number(gpu, f"{since}/sram_uncorrectable_{kind}") for kind in ("parity", "secded")]
    whole = _number(gpu, f"{since}/sram_uncorrectable")
    old = f"{since}/{{}}_bit/{{}}"
    caches = ("register_file", "l1_cache", "l2_cache", "texture_memory", "texture_shm", "cbu")
    return MemoryErrors(
        _sum((*parts, whole, *(_number(gpu, old.format("double", cache)) for cache in caches))),
        _first(_number(gpu, f"{since}/dram_uncorrectable"), _number(gpu, old.format("double", "device_memory"))),
        _first(_number(gpu, f"{since}/sram_correctable"), _sum(_number(gpu, old.format("single", c)) for c in caches)),
        _first(_number(gpu, f"{since}/dram_correctable"), _number(gpu, old.format("single", "device_memory"))),
        _yes(gpu, f"{ever}/sram_threshold_exceeded"),
        _yes(gpu, "ecc_errors/channel_repair_pending"),
        _yes(gpu, "ecc_errors/tpc_repair_pending"),
        _yes(gpu, "ecc_errors/unrepairable_memory"),
    )


def _repairs(gpu: _Element) -> MemoryRepairs:
    """<remapped_rows>N/A</remapped_rows> before Ampere, and of a GPU in MIG mode."""
    banks = "remapped_rows/row_remapper_histogram/row_remapper_histogram_{}"
    pages = "retired_pages/{}_retirement/retired_count"
    return MemoryRepairs(
        _number(gpu, "remapped_rows/remapped_row_unc"),
        _yes(gpu, "remapped_rows/remapped_row_pending"),
        _yes(gpu, "remapped_rows/remapped_row_failure"),
        _number(gpu, banks.format("low"), r"bank\(s\)"),
        _number(gpu, banks.format("none"), r"bank\(s\)"),
        _number(gpu, pages.format("multiple_single_bit")),
        _number(gpu, pages.format("double_bit")),
        _first(_yes(gpu, "retired_pages/pending_retirement"), _yes(gpu, "retired_pages/pending_blacklist")),
    )


def _temperatures(gpu: _Element) -> Temperatures:
    names = ("gpu_temp", "gpu_temp_slow_threshold", "gpu_temp_tlimit", "gpu_temp_slow_tlimit_threshold")
    memory = ("memory_temp", "gpu_temp_max_mem_threshold")
    return Temperatures(*(_number(gpu, f"temperature/{name}", "C") for name in (*names, *memory)))


def _clocks(gpu: _Element) -> Clocks:
    time = "clocks_event_reasons_counters/clocks_event_reasons_counters_{}"
    return Clocks(
        _short(value(gpu, "performance_state")),
        _reasons(gpu),
        _number(gpu, time.format("hw_therm_slowdown"), "us"),
        _number(gpu, time.format("hw_power_brake"), "us"),
        _number(gpu, "applications_clocks/graphics_clock", "MHz"),
        _number(gpu, "default_applications_clocks/graphics_clock", "MHz"),
    )


def _reasons(gpu: _Element) -> Mapping[str, bool]:
    """{"gpu_idle": True, "sw_power_cap": False}; a third word is no answer."""
    said = {"Active": True, "Not Active": False}
    for group, prefix in _REASONS:
        fields = {f.tag.removeprefix(prefix): said.get((f.text or "").strip()) for f in gpu.findall(f"{group}/*")}
        known = {name: active for name, active in fields.items() if active is not None and _NAME.fullmatch(name)}
        if known:
            return MappingProxyType(known)
    return MappingProxyType({})


def _power(gpu: _Element) -> PowerLimits:
    """<power_readings> with an <enforced_power_limit> before 535."""
    new, old = "gpu_power_readings", "power_readings"
    return PowerLimits(
        _first(_watts(gpu, f"{new}/current_power_limit"), _watts(gpu, f"{old}/enforced_power_limit")),
        _first(_watts(gpu, f"{new}/requested_power_limit"), _watts(gpu, f"{old}/power_limit")),
        _first(_watts(gpu, f"{new}/default_power_limit"), _watts(gpu, f"{old}/default_power_limit")),
    )


def _link(gpu: _Element) -> PcieLink:
    return PcieLink(
        _number(gpu, "pci/pci_gpu_link_info/pcie_gen/current_link_gen"),
        _number(gpu, "pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
        _number(gpu, "pci/replay_counter"),
        _number(gpu, "pci/replay_rollover_counter"),
    )


def _use(gpu: _Element) -> GpuUse:
    mebibytes = _number(gpu, "fb_memory_usage/used", "MiB")
    apart = gpu.find("fb_memory_usage/reserved") is not None
    return GpuUse(
        _short(value(gpu, "compute_mode")),
        _short(value(gpu, "gpu_virtualization_mode/virtualization_mode")),
        _number(gpu, "utilization/gpu_util", "%"),
        mebibytes << 20 if apart and mebibytes is not None else None,
        _listed(gpu, "processes", "process_info"),
        _listed(gpu, "mig_devices", "mig_device"),
        _short(value(gpu, "vgpu_software_licensed_product/license_status")),
    )


def _listed(gpu: _Element, group: str, member: str) -> int | None:
    """How many are in the list; None where another word than "None" stands in its place."""
    members = gpu.find(group)
    if members is None or (not len(members) and (members.text or "").strip() not in ("", "None")):
        return None
    return len(members.findall(member))


def _number(gpu: _Element, path: str, unit: str = "") -> int | None:
    """-2 of "-2 C"; counters have 64 bits at most."""
    if (text := value(gpu, path)) is None:
        return None
    match = _number_of(unit).fullmatch(text)
    return int(match[1]) if match else None


@cache
def _number_of(unit: str) -> re.Pattern[str]:
    return re.compile(rf"(-?[0-9]{{1,19}}) ?{unit}", re.ASCII)


def _watts(gpu: _Element, path: str) -> float | None:
    match = _WATTS.fullmatch(value(gpu, path) or "")
    return float(match[1]) if match else None


def _yes(gpu: _Element, path: str) -> bool | None:
    return {"Yes": True, "No": False}.get(value(gpu, path) or "")


def _short(text: str | None) -> str | None:
    return text[:_LONGEST_NAME] if text else None


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _first(new: _T, old: _T) -> _T:
    return old if new is None else new
