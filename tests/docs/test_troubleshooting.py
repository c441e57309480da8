"""The page about symptoms says what gpunode says of such a host today. GPUNODE_UPDATE_GOLDEN=1 rewrites its tables."""

from __future__ import annotations

import os

from tests.checks.test_scenarios import SCENARIOS

from .commands import ROOT
from .symptoms import SECTIONS, tables

PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"
BEGIN, END = "<!-- tables: made from the checks -->\n", "<!-- end of tables -->\n"


def test_the_tables_are_what_the_checks_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    inside, _, after = rest.partition(END)
    if os.environ.get("GPUNODE_UPDATE_GOLDEN"):
        inside = f"\n{tables()}\n"
        PAGE.write_text(before + BEGIN + inside + END + after, encoding="utf-8")
    assert inside == f"\n{tables()}\n"


def test_every_reported_fault_is_on_the_page() -> None:
    assert {row[0].split()[0] for row in SCENARIOS} == set(" ".join(SECTIONS.values()).split())
