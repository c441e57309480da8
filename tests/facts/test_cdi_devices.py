"""A CDI specification held against the GPUs: what it names that is gone, and what it leaves out."""

from __future__ import annotations

import pytest

from gpunode.facts.smi import mig_instances
from gpunode.model.cdi_devices import difference
from gpunode.model.smi import SmiFacts, SmiGpu

FIRST, SECOND = "GPU-aaaaaaaa-0000", "GPU-bbbbbbbb-0000"
HALVES = ("MIG-cccccccc-0000", "MIG-dddddddd-0000")
WHOLE = SmiGpu(0, "0000:19:00.0", "H100", uuid=FIRST, mig_mode="Disabled")
OTHER = SmiGpu(1, "0000:1a:00.0", "L4", uuid=SECOND)
SLICED = SmiGpu(1, "0000:1a:00.0", "H100", SECOND, mig_mode="Enabled", mig_profiles=("3g.40gb",) * 2, mig_uuids=HALVES)
EMPTY = SmiGpu(1, "0000:1a:00.0", "H100", uuid=SECOND, mig_mode="Enabled")


def spec_text(*names: str) -> str:
    """As nvidia-ctk writes it."""
    devices = "".join(f'- containerEdits:\n    deviceNodes:\n    - path: /dev/x\n  name: "{name}"\n' for name in names)
    return (
        f"---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n{devices}containerEdits:\n  hooks:\n  - hookName: 7\n"
    )


@pytest.mark.parametrize(
    ("gpus", "names", "said"),
    [
        ((WHOLE, OTHER), ("0", FIRST, "1", SECOND, "all"), ""),
        ((WHOLE, OTHER), ("gpu0", "0", "gpu1", "1", "all"), ""),
        ((WHOLE, OTHER), ("0", "all"), "1 not in it"),
        ((WHOLE, OTHER), ("0",), ""),
        ((WHOLE,), ("0", "1", "all"), "1 not here"),
        ((WHOLE,), ("1",), "1 not here"),
        ((WHOLE,), ("0", SECOND, "all"), f"{SECOND} not here, {FIRST} not in it"),
        ((WHOLE, SLICED), ("0", "1:0", "1:1", FIRST, *HALVES, "all"), ""),
        ((WHOLE, SLICED), ("0", "1:0", "1:5", "all"), ""),
        ((WHOLE, SLICED), ("gpu0", "mig1:0", "mig1:1", "all"), ""),
        ((WHOLE, SLICED), ("0", "1", "all"), "1 not here, 1:MIG not in it"),
        ((WHOLE, SLICED), (FIRST, HALVES[0], "MIG-eeeeeeee", "all"), f"MIG-eeeeeeee not here, {HALVES[1]} not in it"),
        ((WHOLE, OTHER), ("0", "1:0", "1:1", "all"), "1:MIG not here, 1 not in it"),
        ((WHOLE, EMPTY), ("0", "all"), ""),
        ((WHOLE,), ("all",), ""),
        ((WHOLE,), ("mine", "all"), ""),
    ],
    ids=[
        "index and uuid",
        "index and type-index",
        "a GPU was added",
        "one GPU on purpose",
        "a GPU was taken out",
        "only one that is gone",
        "another GPU in the same slot",
        "MIG",
        "MIG with a gap",
        "MIG by type-index",
        "MIG was switched on",
        "MIG was laid out anew",
        "MIG was switched off",
        "MIG without instances",
        "no names (WSL)",
        "names of somebody's own",
    ],
)
def test_what_a_specification_says_otherwise_than_nvidia_smi(
    gpus: tuple[SmiGpu, ...], names: tuple[str, ...], said: str
) -> None:
    assert str(difference(SmiFacts(0, gpus=gpus), spec_text(*names)) or "") == said


@pytest.mark.parametrize("smi", [None, SmiFacts(9, "no devices"), SmiFacts(0)], ids=["not run", "failed", "empty"])
def test_where_nvidia_smi_did_not_answer_nothing_is_said(smi: SmiFacts | None) -> None:
    assert difference(smi, spec_text("0", "1", "all")) is None


@pytest.mark.parametrize("gpu", [SmiGpu(0, "0000:19:00.0", "H100"), SmiGpu(0, "x", "A100", "GPU-MIG/1/0")])
def test_uuids_are_not_judged_where_they_are_not_known_or_are_of_the_old_form(gpu: SmiGpu) -> None:
    assert difference(SmiFacts(0, gpus=(gpu,)), spec_text(FIRST, "all")) is None


def test_the_uuids_of_mig_instances_are_read_with_their_profiles() -> None:
    text = (
        "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
        "  MIG 2g.35gb     Device  0: (UUID: MIG-9d0ab1c2-3)\n"
        "  MIG 1g.18gb     Device  2: (UUID: N/A)\n"
        "GPU 1: NVIDIA H200 (UUID: GPU-2)\n"
    )
    assert mig_instances(text) == {0: (("2g.35gb", "MIG-9d0ab1c2-3"), ("1g.18gb", ""))}


def test_while_a_gpu_is_lost_no_specification_is_of_other_gpus() -> None:
    lost = SmiGpu(1, "0000:1a:00.0", "", fault="lost")
    well = (SmiGpu(0, "0000:19:00.0", "H100"), SmiGpu(2, "0000:1b:00.0", "H100"))
    assert difference(SmiFacts(0, gpus=well), spec_text("0", "1", "all"))
    assert difference(SmiFacts(0, gpus=(well[0], lost, well[1])), spec_text("0", "1", "all")) is None


def test_a_warning_of_nvidia_smi_keeps_nothing_from_being_compared() -> None:
    warned = SmiFacts(14, "infoROM is corrupted", "595.91.07", gpus=(SmiGpu(0, "0000:19:00.0", "H100"),))
    assert str(difference(warned, spec_text("1", "all"))) == "1 not here, 0 not in it"
