"""The reference says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from gpunode.errors import SEVERITY, ExitCode
from gpunode.specfile import KEYS

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"


def test_the_exit_code_table_lists_every_code_by_number_and_name() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", (REFERENCE / "exit-codes.md").read_text(), re.MULTILINE)
    assert rows == [(str(int(code)), code.name) for code in sorted(ExitCode)]


def test_the_order_of_severity_is_the_one_a_fleet_uses() -> None:
    text = (REFERENCE / "exit-codes.md").read_text()
    assert f"codes: {', '.join(str(int(c)) for c in SEVERITY)}." in text


def test_every_key_of_a_spec_is_in_the_reference() -> None:
    text = (REFERENCE / "cli.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in text] == []
