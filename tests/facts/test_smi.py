"""nvidia-smi's odd answers: a word that stands for no value is none, and one sick GPU does not hide the others."""

from __future__ import annotations

import pytest

from gpunode.facts.driver import parse_driver
from gpunode.facts.smi import parse_smi
from gpunode.facts.wire import Section, Sections
from gpunode.model.smi import SmiFacts, SmiGpu

HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
VERSIONS = "<driver_version>595.91.07</driver_version><cuda_version>13.2</cuda_version>"
# As nvidia-smi 610 prints them with -q (utkuozdemir/nvidia_gpu_exporter, captures of an RTX 2080 SUPER and of H200).
DRIVER_610 = "610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]"
CUDA_610 = "13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]"
# Its three spellings, as users reported them (open-gpu-kernel-modules#387, meta-llama/llama-models#200, and of 610).
NO_HANDLE = "Unable to determine the device handle for GPU"


def gpu(bus: int, **fields: str) -> str:
    """One <gpu> of an H100, with `fields` in place of its own."""
    values = {
        "product_name": "NVIDIA H100 80GB HBM3",
        "persistence_mode": "Enabled",
        "uuid": f"GPU-{bus}",
        "fan_speed": "N/A",
        "gpu_recovery_action": "None",
        "mode": "Disabled",
        "total": "81559 MiB",
        "ecc": "Enabled",
        "state": "Completed",
        "status": "Success",
        "temp": "31 C",
        "power": "69.62 W",
        "process": "/usr/bin/python3",
        "reset": "Requested functionality has been deprecated",
        "drain": "Requested functionality has been deprecated",
    } | fields
    return (
        f'<gpu id="00000000:{bus:02X}:00.0">'
        + "".join(f"<{n}>{values[n]}</{n}>" for n in ("product_name", "persistence_mode", "uuid", "fan_speed"))
        + f"<mig_mode><current_mig>{values['mode']}</current_mig><pending_mig>{values['mode']}</pending_mig></mig_mode>"
        f"<gpu_reset_status><reset_required>{values['reset']}</reset_required>"
        f"<drain_and_reset_recommended>{values['drain']}</drain_and_reset_recommended></gpu_reset_status>"
        f"<gpu_recovery_action>{values['gpu_recovery_action']}</gpu_recovery_action>"
        f"<fb_memory_usage><total>{values['total']}</total></fb_memory_usage>"
        f"<ecc_mode><current_ecc>{values['ecc']}</current_ecc></ecc_mode>"
        f"<temperature><gpu_temp>{values['temp']}</gpu_temp></temperature>"
        f"<gpu_power_readings><instant_power_draw>{values['power']}</instant_power_draw></gpu_power_readings>"
        f"<processes><process_info><process_name>{values['process']}</process_name></process_info></processes>"
        f"<fabric><state>{values['state']}</state><status>{values['status']}</status></fabric></gpu>\n"
    )


def log(*gpus: str, versions: str = VERSIONS) -> str:
    return f"{HEAD}{versions}{''.join(gpus)}</nvidia_smi_log>\n"


FIELDS = ("uuid", "persistence_mode", "mode", "total", "ecc", "state", "status", "product_name")


def known(seen: SmiGpu) -> tuple[object, ...]:
    """Everything that is a value of the GPU, in the order of FIELDS."""
    return (
        seen.uuid, seen.persistence, seen.mig_mode, seen.memory_total_bytes, seen.ecc_mode, seen.fabric_state,
        seen.fabric_status, seen.name or None,
    )  # fmt: skip


@pytest.mark.parametrize("bracket", ["{}", "[{}]"], ids=["bare", "in brackets"])
@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("ERR!", "error"),
        ("Unknown Error", "error"),
        ("GPU is lost", "lost"),
        ("GPU requires reset", "reset-required"),
        ("Not Supported", None),
        ("Not Found", None),
        ("Insufficient Permissions", None),
        ("Requested functionality has been deprecated", None),
    ],
)
def test_a_word_in_place_of_a_value_is_never_the_value(word: str, fault: str | None, bracket: str) -> None:
    facts = parse_smi(log(gpu(1), gpu(2, **dict.fromkeys(FIELDS, bracket.format(word)))), 0)
    well, odd = facts.gpus
    assert None not in known(well)
    assert known(odd) == (None,) * len(FIELDS)
    assert (well.fault, odd.fault) == (None, fault)


@pytest.mark.parametrize(
    ("field", "word", "fault", "where"),
    [
        ("temp", "GPU is lost", "lost", "temperature/gpu_temp: GPU is lost"),
        ("power", "[GPU requires reset]", "reset-required", "gpu_power_readings/instant_power_draw: [GPU requires"),
        ("fan_speed", "ERR!", "error", "fan_speed: ERR!"),
        ("power", "[Unknown Error]", "error", "gpu_power_readings/instant_power_draw: [Unknown Error]"),
    ],
)
def test_a_fault_in_a_field_that_gpunode_does_not_use_is_seen_too(
    field: str, word: str, fault: str, where: str
) -> None:
    odd = parse_smi(log(gpu(1, **{field: word})), 0).gpus[0]
    assert odd.fault == fault
    assert odd.fault_fields[0].startswith(where)
    assert odd.uuid == "GPU-1"


@pytest.mark.parametrize("name", ["ERR!", "GPU is lost", "GPU requires reset"])
def test_a_program_cannot_make_a_gpu_sick_by_its_name(name: str) -> None:
    assert parse_smi(log(gpu(1, process=name)), 0).gpus[0].fault is None


@pytest.mark.parametrize(
    "name",
    ["/x/a&b", "/x/a<b", "a\x01b", "\udcff\udcfe", "<!ENTITY x", "</process_name></process_info></processes></gpu>"],
    ids=ascii,
)
def test_a_program_cannot_hide_the_driver_by_its_name(name: str) -> None:
    facts = parse_smi(log(gpu(1, process=name), gpu(2)), 0)
    assert facts == parse_smi(log(gpu(1), gpu(2)), 0)
    assert (facts.driver_version, [g.uuid for g in facts.gpus]) == ("595.91.07", ["GPU-1", "GPU-2"])


def test_xml_that_is_broken_elsewhere_is_said_to_be() -> None:
    facts = parse_smi(log(gpu(1, product_name="a<b")), 0)
    assert (facts.gpus, facts.driver_version) == ((), None)
    assert facts.message.startswith("nvidia-smi's XML does not parse: ")


def test_bytes_that_are_no_text_cost_their_own_field_alone() -> None:
    seen = parse_smi(log(gpu(1, product_name="H\udcff100")), 0).gpus[0]
    assert (seen.name, seen.uuid) == ("H?100", "GPU-1")


@pytest.mark.parametrize(
    ("fields", "recovery", "flags"),
    [
        ({}, "None", ()),
        ({"gpu_recovery_action": "N/A"}, None, ()),
        ({"gpu_recovery_action": "Reset"}, "Reset", ()),
        ({"gpu_recovery_action": "Drain and Reset"}, "Drain and Reset", ()),
        ({"gpu_recovery_action": "N/A", "reset": "Yes"}, None, ("reset_required",)),
        ({"gpu_recovery_action": "N/A", "reset": "No", "drain": "Yes"}, None, ("drain_and_reset_recommended",)),
        ({"gpu_recovery_action": "GPU requires reset", "reset": "[GPU requires reset]"}, None, ()),
        ({"gpu_recovery_action": "N/A", "reset": "No", "drain": "No"}, None, ()),
    ],
    ids=[
        "none", "not supported", "reset", "drain first", "before 575: required", "before 575: advised",
        "a word in place of both", "before 575: not required",
    ],
)  # fmt: skip
def test_the_recovery_that_the_driver_asks_for_is_read(
    fields: dict[str, str], recovery: str | None, flags: tuple[str, ...]
) -> None:
    seen = parse_smi(log(gpu(1, **fields)), 0).gpus[0]
    assert (seen.recovery, seen.reset_flags) == (recovery, flags)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (f"{NO_HANDLE} 0000:02:00.0: Unknown Error", "lost"),
        (f"{NO_HANDLE}0000:02:00.0: Unknown Error", "lost"),
        (f"{NO_HANDLE}1: 0000:02:00.0: Unknown Error", "lost"),
        (f"{NO_HANDLE}1: Unknown Error", "lost"),
        (f"{NO_HANDLE} 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU", "lost"),
        (f"{NO_HANDLE} 0000:02:00.0: GPU requires reset", "reset-required"),
    ],
)
@pytest.mark.parametrize("code", [0, 15, 255])
def test_one_gpu_without_a_handle_leaves_the_healthy_ones(line: str, fault: str, code: int) -> None:
    facts = parse_smi(f"{line}\n{log(gpu(1), gpu(3))}", code, "GPU 2: NVIDIA H100\n  MIG 1g.10gb  Device 0: ()\n")
    assert [g.fault for g in facts.gpus] == [None, fault, None]
    assert [g.uuid for g in facts.gpus] == ["GPU-1", None, "GPU-3"]
    assert [g.index for g in facts.gpus] == [0, 1, 2]
    assert facts.gpus[2].mig_profiles == ("1g.10gb",)
    assert facts.gpus[1].fault_fields == (line,)
    assert (facts.driver_version, facts.code) == ("595.91.07", code)
    assert facts.gpus[1].pci_address in ("0000:02:00.0", "")


def test_an_answer_that_is_only_the_sick_gpu_names_it() -> None:
    facts = parse_smi(f"{NO_HANDLE} 0000:0B:00.0: Unknown Error\n", 15)
    assert [(g.pci_address, g.fault, g.index) for g in facts.gpus] == [("0000:0b:00.0", "lost", -1)]
    assert facts.message == f"{NO_HANDLE} 0000:0B:00.0: Unknown Error"


def test_a_warning_and_its_exit_code_do_not_discard_the_answer() -> None:
    facts = parse_smi(f"{log(gpu(1))}WARNING: infoROM is corrupted at gpu 0000:01:00.0\n", 14)
    assert (facts.code, len(facts.gpus)) == (14, 1)
    assert facts.message == "WARNING: infoROM is corrupted at gpu 0000:01:00.0"


@pytest.mark.parametrize(
    ("versions", "driver", "cuda"),
    [
        (f"<driver_version>{DRIVER_610}</driver_version><cuda_version>{CUDA_610}</cuda_version>"
         "<kmd_version>610.57.04</kmd_version><cuda_umd_version>13.3</cuda_umd_version>", "610.57.04", "13.3"),
        ("<driver_version>610.57.04<!-- Deprecated; use kmd_version --></driver_version><!-- Deprecated -->"
         "<cuda_version>13.3</cuda_version>"
         "<kmd_version>610.57.04</kmd_version><cuda_umd_version>13.3</cuda_umd_version>", "610.57.04", "13.3"),
        ('<driver_version>Deprecated, see "KMD version" instead</driver_version>'
         "<kmd_version>610.57.04</kmd_version><cuda_umd_version>13.3</cuda_umd_version>", "610.57.04", "13.3"),
        (VERSIONS, "595.91.07", "13.2"),
    ],
    ids=["notes", "comments", "only the new fields", "595"],
)  # fmt: skip
def test_a_deprecated_version_is_read_without_its_note(versions: str, driver: str, cuda: str) -> None:
    facts = parse_smi(log(gpu(1), versions=versions), 0)
    assert (facts.driver_version, facts.cuda_version) == (driver, cuda)
    new = ("610.57.04", "13.3") if "kmd" in versions else (None, None)
    assert (facts.kmd_version, facts.cuda_umd_version) == new


def test_no_gpu_is_made_up_from_other_words() -> None:
    assert parse_smi("No devices were found\n", 6) == SmiFacts(6, "No devices were found")


@pytest.mark.parametrize(("code", "profiles"), [(0, ("1g.10gb",)), (15, ("1g.10gb",)), (124, ())])
def test_the_instances_of_healthy_gpus_are_known_next_to_a_lost_one(code: int, profiles: tuple[str, ...]) -> None:
    listed = (
        f"{NO_HANDLE} 0000:02:00.0: Unknown Error\nGPU 0: NVIDIA H100 (UUID: GPU-1)\n  MIG 1g.10gb  Device  0: ()\n"
    )
    sections = {"smi": Section(log(gpu(1, mode="Enabled")), 15), "smi_list": Section(listed, code)}
    smi = parse_driver(Sections(sections)).smi
    assert smi is not None
    assert smi.gpus[0].mig_profiles == profiles
