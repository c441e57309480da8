"""Every shell file parses, and shellcheck finds nothing in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMON = ROOT / "gpunode" / "apply" / "common.sh"
FOLDERS = (".ci", "gpunode", "scripts", "templates", "tests")
SHEBANG = re.compile(rb"#! ?/(?:usr/)?bin/(?:env )?(sh|bash|dash)\b")


def shell_files() -> Iterator[tuple[Path, str]]:
    """(file, the shell its first line names; a *.sh file without such a line is sourced or piped into sh)."""
    for path in sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*")):
        if not path.is_file() or path.suffix in (".py", ".pyc"):
            continue
        with path.open("rb") as file:
            named = SHEBANG.match(file.readline())
        if named:
            yield path, named[1].decode()
        elif path.suffix == ".sh":
            yield path, "sh"


FILES = [pytest.param(path, shell, id=path.relative_to(ROOT).as_posix()) for path, shell in shell_files()]


@pytest.mark.parametrize(("path", "shell"), FILES)
def test_the_shell_can_parse(path: Path, shell: str) -> None:
    told = subprocess.run((shell, "-n", path), capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize(("path", "shell"), FILES)
def test_shellcheck_is_silent(path: Path, shell: str) -> None:
    told = subprocess.run(
        ("shellcheck", "--severity=warning", f"--shell={shell}", "-x", f"--source-path={path.parent}", *_except(path)),
        input=_as_run(path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout


def _as_run(path: Path) -> str:
    """What the host's shell reads: gpunode/apply puts common.sh before each of its scripts."""
    before = COMMON.read_text(encoding="utf-8") if path.parent == COMMON.parent and path != COMMON else ""
    return before + path.read_text(encoding="utf-8")


def _except(path: Path) -> tuple[str, ...]:
    # SC2034: no script uses all of common.sh. SC2217: `</dev/null` keeps mv, as every program, from the text on stdin.
    return ("--exclude=SC2034,SC2217", "-") if path.parent == COMMON.parent else ("-",)


@pytest.mark.parametrize("name", ["scripts/check", "scripts/demo", "scripts/test", ".ci/run"])
def test_a_command_that_people_type_can_be_executed(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
