"""Xids by NVIDIA's catalogue: what it asks for decides, and a faulty row says where it is."""

from __future__ import annotations

import re

import pytest

from gpunode.catalog import xids as table
from gpunode.catalog.rows import Row
from gpunode.catalog.xids import limits, sxids, xids
from gpunode.errors import UsageError
from gpunode.remedy import RepairAction

GOOD: dict[str, object] = {
    "code": 79, "severity": "error", "action": "reboot", "meaning": "it is gone", "source": "a guide",
    "checked": "2026-11-23", "grade": "documented",
}  # fmt: skip
# The last word of a row's source, as NVIDIA's catalogue spells its immediate action.
ASKED = {
    "RESTART_APP": ("warning", RepairAction.NONE),
    "IGNORE": ("none", RepairAction.NONE),
    "RESET_GPU": ("error", RepairAction.RESET_GPU),
    "RESTART_BM": ("error", RepairAction.REBOOT),
    "RESTART_VM": ("error", RepairAction.REBOOT),
    "CHECK_MECHANICALS": ("error", RepairAction.REPLACE),
    "UPDATE_SWFW": ("error", RepairAction.UPGRADE),
    "CONTACT_SUPPORT": ("warning", RepairAction.SUPPORT),
}


def test_what_nvidias_catalogue_asks_for_is_what_a_row_says() -> None:
    words = {code: re.search(r": ([A-Z_]+)$", row.source) for code, row in xids().items()}
    asked = {code: ASKED[found[1]] for code, found in words.items() if found and found[1] in ASKED}
    assert len(asked) > 80
    assert {code: (xids()[code].severity, xids()[code].action) for code in asked} == asked


@pytest.mark.parametrize("code", [13, 31, 69])
def test_a_programs_own_fault_is_no_fault_of_the_node(code: int) -> None:
    assert xids()[code].of_a_program


@pytest.mark.parametrize("code", [43, 45, 63])
def test_what_needs_nothing_is_not_even_a_warning(code: int) -> None:
    assert xids()[code].severity == "none"


@pytest.mark.parametrize(("code", "action"), [(79, "reboot"), (95, "reset-gpu"), (119, "reset-gpu"), (54, "replace")])
def test_a_fault_of_the_gpu_is_an_error_with_its_action(code: int, action: str) -> None:
    assert (xids()[code].severity, xids()[code].action.value) == ("error", action)


def test_tables_are_whole() -> None:
    assert (len(xids()), len(sxids()), set(limits())) == (110, 93, {"aer-correctable", "edac-corrected", "xid-hours"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"action": "pray"}, r"action: 'pray' is not none \| configure"),
        ({"severity": "bad"}, r"severity: 'bad' is not error \| warning"),
        ({"code": "79"}, r"code"),
        ({"extra": 1}, r"extra"),
    ],
)
def test_a_faulty_row_names_file_row_and_key(change: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=rf"catalog/xids\.yaml: .*{says}"):
        table._code(Row("xids.yaml", "xids[79]", GOOD | change))
