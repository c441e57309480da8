"""A directory of checks: whose is used, and all of its faults at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpunode.errors import UsageError
from gpunode.render.json_schema import json_schema
from gpunode.site_checks.directory import MOST_FILES, MOST_PROGRAMS, SiteCheck, load_site_checks
from tests.hostile.users import NOBODY, needs_root
from tests.site_checks.places import program, put
from tests.site_checks.test_written import text_of

SCHEMA = json_schema()


def load(directory: Path) -> tuple[SiteCheck, ...]:
    return load_site_checks(directory, SCHEMA)


def refusal(directory: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(directory)
    return caught.value


def test_files_and_programs_become_checks_and_pages_do_not(checks: Path) -> None:
    put(checks, "b.yaml", text_of(id="site.b"))
    put(checks, "c.yml", text_of(id="site.a"))
    program(checks, "ib-links.py", "exit 0")
    for page in ("README", "README.txt", "notes.md", ".hidden"):
        put(checks, page, "x")
    assert [(one.id, one.file) for one in load(checks)] == [
        ("site.a", f"{checks}/c.yml"),
        ("site.b", f"{checks}/b.yaml"),
        ("site.ib-links", f"{checks}/ib-links.py"),
    ]


def test_all_faults_of_all_files_together(checks: Path) -> None:
    put(checks, "a.yaml", text_of(severity="bad"))
    put(checks, "b.yaml", text_of(id="site.twice"))
    put(checks, "c.yaml", text_of(id="site.twice"))
    put(checks, "d", "not executable")
    put(checks, "e.yaml", "#" * (64 * 1024 + 1))
    program(checks, "twice", "exit 0")
    program(checks, "Bad Name", "exit 0")
    (checks / "f").mkdir()
    (checks / "g.yaml").symlink_to(checks / "b.yaml")
    error = refusal(checks)
    assert error.problem == f"--site-checks {checks}: 8 faults"
    assert error.evidence.splitlines() == [
        f"{checks}/Bad Name: a program's name is small letters, digits and hyphens: ib-links, ib-links.py",
        f"{checks}/a.yaml:7: severity: 'bad' is not a choice; they are error, warning",
        f"{checks}/c.yaml: site.twice is in {checks}/b.yaml as well",
        f"{checks}/d: it is neither a .yaml file nor a program (nobody may execute it)",
        f"{checks}/e.yaml: it is over 65536 bytes",
        f"{checks}/f: it is not a regular file",
        f"{checks}/g.yaml: it is not a regular file",
        f"{checks}/twice: site.twice is in {checks}/c.yaml as well",
    ]


def test_an_empty_directory_is_a_mistake(checks: Path) -> None:
    assert "neither a .yaml file nor a program" in refusal(checks).evidence


def test_numbers_are_bounded(checks: Path) -> None:
    for number in range(MOST_PROGRAMS + 1):
        program(checks, f"p{number}", "")
    assert f"{MOST_PROGRAMS + 1} programs are more than {MOST_PROGRAMS}" in refusal(checks).evidence
    for number in range(MOST_FILES):
        put(checks, f".h{number}", "")
    assert f"over {MOST_FILES} files" in refusal(checks).problem


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_directory_that_others_may_write_is_not_used(mode: int, checks: Path) -> None:
    inner = checks / "inner"
    inner.mkdir()
    put(inner, "a.yaml", text_of())
    inner.chmod(0o755)
    assert len(load(inner)) == 1
    inner.chmod(mode)
    assert f"is not used: {inner} can be written by" in refusal(inner).problem


def test_nor_is_one_below_such_a_directory_or_reached_through_it(checks: Path) -> None:
    below = checks / "open" / "inner"
    below.mkdir(parents=True)
    put(below, "a.yaml", text_of())
    (checks / "open").chmod(0o1777)
    assert f"{checks}/open can be written by" in refusal(below).problem
    (checks / "good").mkdir(mode=0o755)
    put(checks / "good", "a.yaml", text_of())
    (checks / "open" / "link").symlink_to(checks / "good")
    assert f"{checks}/open can be written by" in refusal(checks / "open" / "link").problem
    (checks / "link").symlink_to(checks / "good")
    assert len(load(checks / "link")) == 1


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o722])
def test_a_file_that_others_may_write_is_not_used(mode: int, checks: Path) -> None:
    program(checks, "x", "exit 0").chmod(mode)
    put(checks, "y.yaml", text_of(), 0o666)
    first, second = refusal(checks).evidence.splitlines()
    assert f"{checks}/x: it is not used: {checks}/x can be written by" in first
    assert f"{checks}/y.yaml: it is not used" in second


@needs_root
@pytest.mark.parametrize("name", ["a.yaml", "x", ""], ids=["a file", "a program", "the directory"])
def test_root_uses_nothing_that_a_user_owns(name: str, checks: Path) -> None:
    put(checks, "a.yaml", text_of())
    program(checks, "x", f"touch {checks}/ran")
    os.chown(checks / name, NOBODY, NOBODY)
    error = refusal(checks)
    assert f"{checks / name!s} belongs to user {NOBODY}" in f"{error.problem} {error.evidence}"
    assert not (checks / "ran").exists()


def test_a_directory_that_is_not_there(checks: Path) -> None:
    assert refusal(checks / "nosuch").evidence == "No such file or directory"
