"""What the README tells a person to type does what it says."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
COMMANDS = [
    line.split("#", 1)[0].strip()
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("    ")
]
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
# What the page promises of a command besides that it runs: plan shows something to do, a ready node passes every check.
ANSWER = {"plan": "driver", "check": "checks pass"}


@pytest.mark.parametrize("command", [c for c in COMMANDS if "--recorded" in c])
def test_a_command_on_a_sample_host_succeeds(command: str) -> None:
    program, *words = shlex.split(command)
    assert program == "gpunode"
    told = subprocess.run(
        (sys.executable, "-m", "gpunode", *words), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert ANSWER[words[0]] in told.stdout.lower()


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("gpunode ")])
def test_every_verb_and_option_exists(command: str) -> None:
    words = shlex.split(command)[1:]
    verb = itertools.takewhile(lambda word: not word.startswith("-"), words)
    told = subprocess.run(
        (sys.executable, "-m", "gpunode", *verb, "--help"),
        cwd=ROOT,
        env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert [w for w in words if w.startswith("--") and w not in told.stdout] == []


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("scripts/")])
def test_every_script_exists(command: str) -> None:
    assert (ROOT / command.split()[0]).is_file()


@pytest.mark.parametrize(
    ("page", "target"),
    [pytest.param(p, t, id=f"{p.name} {t}") for p in PAGES for t in LINK.findall(p.read_text(encoding="utf-8"))],
)
def test_every_link_leads_to_a_file(page: Path, target: str) -> None:
    assert (page.parent / target).exists()


def test_the_lines_that_install_make_an_environment_of_their_own() -> None:
    """Debian 12, Ubuntu 23.04 and newer mark the system's Python as externally managed (PEP 668): pip refuses it."""
    lines = [command for command in COMMANDS if " install " in command]
    assert len(lines) == 3
    assert [line for line in lines if re.search(r"(?<!bin/)pip3? install", line)] == []


def test_the_python_that_is_asked_for_is_the_packages() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        floor = re.search(rb'requires-python = ">=([0-9.]+)"', file.read())
    assert floor
    assert f"Python {floor[1].decode()} or newer" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_needs_a_program_called_python(page: Path) -> None:
    """Debian and EL have python3 alone; in a virtual environment it is named with its path."""
    assert re.findall(r"(?<![/\w.-])python -", page.read_text(encoding="utf-8")) == []
