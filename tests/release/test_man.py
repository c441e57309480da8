"""Every verb has a manual page that man and mandoc read without a word, with each option of its help."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from gpunode_release.command_line import Verb, command_line
from gpunode_release.man import Edition, exit_codes, man_pages

CODES = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
EDITION = Edition("0.1.0", 1764000000, exit_codes(CODES))
PAGES = man_pages(EDITION)
VERBS = tuple(command_line().all())


def test_every_verb_has_a_page() -> None:
    assert len(VERBS) > 20
    assert sorted(PAGES) == sorted(f"{'-'.join(('gpunode', *verb.path))}.1" for verb in VERBS)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_finds_nothing(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    told = subprocess.run(
        ("mandoc", "-T", "lint", "-W", "warning", *sorted(tmp_path.iterdir())),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_page_shows_what_help_shows(verb: Verb) -> None:
    told = subprocess.run(
        ("mandoc", "-T", "ascii", "-O", "width=1000"),
        input=PAGES[f"{verb.name}.1"],
        capture_output=True,
        text=True,
        check=True,
    )
    page = _plain(told.stdout)
    assert verb.help in page
    for option in verb.options:
        assert option.help in page
        assert ", ".join(option.flags) + (f" {option.value}" if option.value else "") in page
    for example in verb.examples:
        assert example in page


def _plain(text: str) -> str:
    """mandoc prints bold as x, backspace, x: the last one that is struck counts."""
    kept: list[str] = []
    for character in text:
        if character == "\b":
            kept.pop()
        else:
            kept.append(character)
    return "".join(kept)


def test_the_date_and_the_codes_are_those_of_the_edition() -> None:
    page = PAGES["gpunode.1"]
    assert page.startswith('.TH GPUNODE 1 "2025-11-24" "gpunode 0.1.0" "User Commands"\n')
    assert [code for code, _ in EDITION.codes] == [str(number) for number in range(10)]
    assert "\\fB7\\fR\ntoday\\(aqs facts lead to another plan" in page


def test_a_page_without_codes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "codes.md").write_text("# Exit codes\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no table of exit codes"):
        exit_codes(tmp_path / "codes.md")
