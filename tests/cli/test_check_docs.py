"""What there is to read about checks: a page, and one check by its id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpunode.checks import all_checks, explain
from gpunode.cli.app import main
from gpunode.cli.verbs.check_docs import checks_page, table
from gpunode.model.repair import ELSEWHERE
from gpunode.remedy import RepairAction

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "checks.md"
# api/v1/types.go of leptonai/gpud; health_event.proto of NVIDIA/NVSentinel.
GPUD = {"IGNORE_NO_ACTION_REQUIRED", "REBOOT_SYSTEM", "HARDWARE_INSPECTION", "CHECK_USER_APP_AND_GPU"}
NVSENTINEL = {"NONE", "COMPONENT_RESET", "CONTACT_SUPPORT", "RESTART_VM", "RESTART_BM", "REPLACE_VM"}


def test_the_page_is_what_the_checks_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == checks_page(all_checks()), (
        "gpunode catalog checks > docs/reference/checks.md"
    )


def test_every_check_and_every_action_is_on_the_page() -> None:
    text = checks_page(all_checks())
    assert [doc.id for doc in all_checks() if f"\n| `{doc.id}` {doc.severity.value} |" not in text] == []
    assert [a for a in RepairAction if f"\n| `{a.value}` | {a.meaning} | " not in text] == []


def test_a_cell_keeps_its_table_whole() -> None:
    assert table(("a",), [("x | y\n*",)]).splitlines()[-1] == r"| x \| y \* |"


def test_the_page_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "checks"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8")


def test_every_action_has_a_word_of_the_other_tools() -> None:
    assert set(ELSEWHERE) == set(RepairAction)
    assert {there.gpud for there in ELSEWHERE.values()} == GPUD
    assert {word for there in ELSEWHERE.values() for word in (there.nvsentinel, there.nvsentinel_vm)} == NVSENTINEL


def test_one_check_is_explained_with_what_it_explains_and_what_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "drv.dkms-running"]) == 0
    doc, lines = explain("drv.dkms-running"), capsys.readouterr().out.splitlines()
    assert doc is not None
    assert lines[0] == "drv.dkms-running   error"
    assert {line[:9].strip() for line in lines[2:]} >= {"Proves", "Broken", "Reads", "Remedy", "Action"}
    assert f"Explains {', '.join(doc.explains)}" in lines
    assert f"Follows  from {', '.join(doc.explained_by)}" in lines
    assert "drv.headers-running" in doc.explained_by


def test_a_program_reads_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "drv.headers-running", "--json"]) == 0
    (doc,) = json.loads(capsys.readouterr().out)["checks"]
    assert (doc["explained_by"], "drv.module-loaded" in doc["explains"]) == (["drv.headers-meta"], True)
