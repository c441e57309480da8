"""What nvidia-smi says of a GPU's health, in the tags of its branches; what is no value is None."""

from __future__ import annotations

import re
from dataclasses import is_dataclass

import pytest

from gpunode.facts.smi import parse_smi
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

# The tags of 575 to 595 as answers on the web have them; the values are of no real GPU.
H100_595 = """
<board_part_number>692-2G520-0200-000</board_part_number><vbios_version>96.00.A5.00.03</vbios_version>
<gpu_virtualization_mode><virtualization_mode>Pass-Through</virtualization_mode></gpu_virtualization_mode>
<pci><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>4</current_link_gen>
<device_current_link_gen>4</device_current_link_gen><max_device_link_gen>5</max_device_link_gen>
<max_host_link_gen>N/A</max_host_link_gen></pcie_gen></pci_gpu_link_info>
<replay_counter>9</replay_counter><replay_rollover_counter>0</replay_rollover_counter></pci>
<performance_state>P0</performance_state>
<clocks_event_reasons>
<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
<clocks_event_reason_sync_boost>N/A</clocks_event_reason_sync_boost></clocks_event_reasons>
<clocks_event_reasons_counters>
<clocks_event_reasons_counters_hw_therm_slowdown>15 us</clocks_event_reasons_counters_hw_therm_slowdown>
<clocks_event_reasons_counters_hw_power_brake>0 us</clocks_event_reasons_counters_hw_power_brake>
</clocks_event_reasons_counters>
<fb_memory_usage><total>81559 MiB</total><reserved>614 MiB</reserved><used>17 MiB</used></fb_memory_usage>
<compute_mode>Default</compute_mode><utilization><gpu_util>97 %</gpu_util></utilization>
<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Disabled</pending_ecc></ecc_mode>
<ecc_errors><volatile><sram_correctable>1</sram_correctable>
<sram_uncorrectable_parity>2</sram_uncorrectable_parity><sram_uncorrectable_secded>3</sram_uncorrectable_secded>
<dram_correctable>4</dram_correctable><dram_uncorrectable>5</dram_uncorrectable></volatile>
<aggregate><dram_uncorrectable>99</dram_uncorrectable><sram_threshold_exceeded>Yes</sram_threshold_exceeded></aggregate>
<channel_repair_pending>No</channel_repair_pending><tpc_repair_pending>Yes</tpc_repair_pending>
<unrepairable_memory>N/A</unrepairable_memory></ecc_errors>
<retired_pages><multiple_single_bit_retirement><retired_count>N/A</retired_count></multiple_single_bit_retirement>
<double_bit_retirement><retired_count>N/A</retired_count></double_bit_retirement>
<pending_blacklist>N/A</pending_blacklist><pending_retirement>N/A</pending_retirement></retired_pages>
<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>2</remapped_row_unc>
<remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
<row_remapper_histogram><row_remapper_histogram_max>3071 bank(s)</row_remapper_histogram_max>
<row_remapper_histogram_low>1 bank(s)</row_remapper_histogram_low>
<row_remapper_histogram_none>0 bank(s)</row_remapper_histogram_none></row_remapper_histogram></remapped_rows>
<temperature><gpu_temp>28 C</gpu_temp><gpu_temp_tlimit>59 C</gpu_temp_tlimit>
<gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>
<gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>
<memory_temp>32 C</memory_temp><gpu_temp_max_mem_tlimit_threshold>0 C</gpu_temp_max_mem_tlimit_threshold></temperature>
<gpu_power_readings><current_power_limit>650.00 W</current_power_limit>
<requested_power_limit>700.00 W</requested_power_limit><default_power_limit>700.00 W</default_power_limit>
</gpu_power_readings>
<applications_clocks><graphics_clock>Requested functionality has been deprecated</graphics_clock></applications_clocks>
<default_applications_clocks><graphics_clock>[N/A]</graphics_clock></default_applications_clocks>
<mig_devices><mig_device><index>0</index></mig_device></mig_devices>
<processes><process_info><pid>7</pid></process_info><process_info><pid>9</pid></process_info></processes>
"""
# The tags of 470, of a Volta.
V100_470 = """
<gpu_virtualization_mode><virtualization_mode>None</virtualization_mode></gpu_virtualization_mode>
<performance_state>P2</performance_state>
<clocks_throttle_reasons>
<clocks_throttle_reason_hw_slowdown>Not Active</clocks_throttle_reason_hw_slowdown>
<clocks_throttle_reason_hw_thermal_slowdown>Active</clocks_throttle_reason_hw_thermal_slowdown>
</clocks_throttle_reasons>
<fb_memory_usage><total>16160 MiB</total><used>4 MiB</used></fb_memory_usage>
<compute_mode>Prohibited</compute_mode>
<ecc_mode><pending_ecc>Enabled</pending_ecc></ecc_mode>
<ecc_errors><volatile>
<single_bit><device_memory>3</device_memory><register_file>1</register_file><l1_cache>1</l1_cache>
<texture_memory>N/A</texture_memory><total>5</total></single_bit>
<double_bit><device_memory>2</device_memory><register_file>0</register_file><cbu>1</cbu><total>3</total></double_bit>
</volatile></ecc_errors>
<retired_pages><multiple_single_bit_retirement><retired_count>4</retired_count></multiple_single_bit_retirement>
<double_bit_retirement><retired_count>1</retired_count></double_bit_retirement>
<pending_blacklist>Yes</pending_blacklist></retired_pages>
<remapped_rows>N/A</remapped_rows>
<temperature><gpu_temp>88 C</gpu_temp><gpu_temp_slow_threshold>87 C</gpu_temp_slow_threshold>
<memory_temp>80 C</memory_temp><gpu_temp_max_mem_threshold>85 C</gpu_temp_max_mem_threshold></temperature>
<power_readings><power_limit>300.00 W</power_limit><enforced_power_limit>250.00 W</enforced_power_limit>
<default_power_limit>300.00 W</default_power_limit></power_readings>
<applications_clocks><graphics_clock>1005 MHz</graphics_clock></applications_clocks>
<default_applications_clocks><graphics_clock>1312 MHz</graphics_clock></default_applications_clocks>
<processes>
</processes>
"""


def health(inside: str) -> GpuHealth:
    return parse_smi(f'<nvidia_smi_log><gpu id="00000000:41:00.0">{inside}</gpu></nvidia_smi_log>', 0).gpus[0].health


def test_the_tags_of_today_are_read() -> None:
    assert health(H100_595) == GpuHealth(
        "Disabled",
        MemoryErrors(5, 5, 1, 4, True, False, True, None),
        MemoryRepairs(2, True, False, 1, 0, None, None, None),
        Temperatures(28, None, 59, -2, 32, None),
        Clocks("P0", {"gpu_idle": False, "sw_power_cap": True}, 15, 0),
        PowerLimits(650.0, 700.0, 700.0),
        PcieLink(4, 5, 9, 0),
        GpuUse("Default", "Pass-Through", 97, 17 << 20, 2, 1),
        GpuBoard("692-2G520-0200-000", "96.00.A5.00.03"),
    )


def test_the_tags_of_470_and_of_a_volta_are_read() -> None:
    assert health(V100_470) == GpuHealth(
        "Enabled",
        MemoryErrors(1, 2, 2, 3),
        MemoryRepairs(pages_single_bit=4, pages_double_bit=1, pages_pending=True),
        Temperatures(88, 87, None, None, 80, 85),
        Clocks("P2", {"hw_slowdown": False, "hw_thermal_slowdown": True}, None, None, 1005, 1312),
        PowerLimits(250.0, 300.0, 300.0),
        PcieLink(),
        GpuUse("Prohibited", "None", None, None, 0, None),
    )


def test_sram_of_a_turing_under_580_is_one_number() -> None:
    text = "<ecc_errors><volatile><sram_uncorrectable>4</sram_uncorrectable></volatile></ecc_errors>"
    assert health(text).errors == MemoryErrors(sram_uncorrectable=4)


def test_what_nvidia_smi_says_no_or_yes_to_where_others_have_no_value_is_read() -> None:
    pages = health("<retired_pages><pending_retirement>Yes</pending_retirement></retired_pages>").repairs
    assert pages == MemoryRepairs(pages_pending=True)
    beyond = health("<ecc_errors><unrepairable_memory>Yes</unrepairable_memory></ecc_errors>").errors
    assert beyond == MemoryErrors(unrepairable=True)


NO_VALUES = (
    "N/A", "[N/A]", "Not Supported", "[Unknown Error]", "ERR!", "GPU is lost", "[GPU requires reset]", "Unspecified",
    "[Insufficient Permissions]", "Requested functionality has been deprecated", "", "-", "yes", "1e9 C", "0x10", "٣ C",
    "12 W C MiB", "9" * 400,
)  # fmt: skip


@pytest.mark.parametrize("word", NO_VALUES)
def test_what_is_no_value_is_none_in_every_field(word: str) -> None:
    odd = health(re.sub(r">[^<>\s][^<>]*<", f">{word}<", H100_595))
    known = {
        f"{part}.{name}": value
        for part, group in vars(odd).items() if is_dataclass(group)
        for name, value in vars(group).items() if value is not None and value != {}
    }  # fmt: skip
    texts = {
        "use.processes",
        "use.mig_devices",
        "board.part",
        "board.vbios",
        "clocks.state",
        "use.compute_mode",
        "use.virtualization",
    }
    assert set(known) <= texts
    assert all(len(str(value)) <= 60 for value in known.values())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("<processes></processes>", 0),
        ("<processes>\nNone\n</processes>", 0),
        ("<processes>N/A</processes>", None),
        ("", None),
        ("<processes><process_info/></processes>", 1),
    ],
)
def test_a_list_that_nobody_may_see_is_not_an_empty_one(text: str, count: int | None) -> None:
    assert health(text).use.processes == count
    mig = text.replace("processes", "mig_devices").replace("process_info", "mig_device")
    assert health(mig).use.mig_devices == count
