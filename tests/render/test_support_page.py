"""docs/support.md says what the catalog says."""

from __future__ import annotations

from pathlib import Path

from gpunode.catalog.load import load_catalog
from gpunode.render.support_page import support_text

PAGE = Path(__file__).parent.parent.parent / "docs" / "support.md"


def test_the_page_is_what_the_catalog_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == support_text(load_catalog()), "gpunode catalog support > docs/support.md"


def test_unverified_rows_are_marked_and_refusals_are_shown() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "| Arch Linux (unverified) | pacman |" in text
    assert "| openEuler (unverified) | dnf | not supported: " in text
    assert "`--driver 470` asks for its ended branch" in text
