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
SHELL = ROOT / "gpunode" / "shell"
COMMON = SHELL / "common.sh"
# What gpunode/apply/script.py sends with common.sh before it.
WITH_COMMON = ("commands", "files", "journal", "lock.sh", "packages/inventory.sh")
DIRECTORIES = (".ci", "examples", "gpunode", "packaging", "scripts", "tests")
SHEBANG = re.compile(rb"#! ?/(?:usr/)?bin/(?:env )?(sh|bash|dash)\b")


def shell_files() -> Iterator[tuple[Path, str]]:
    """(file, the shell its first line names; a *.sh file without such a line is sourced or piped into sh)."""
    for path in sorted(p for directory in DIRECTORIES for p in (ROOT / directory).rglob("*")):
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
    before = COMMON.read_text(encoding="utf-8") if _has_common(path) else ""
    return before + path.read_text(encoding="utf-8")


def _except(path: Path) -> tuple[str, ...]:
    # SC2034: no script uses all of common.sh. SC2217: `</dev/null` keeps mv, as every program, from the text on stdin.
    return ("--exclude=SC2034,SC2217", "-") if _has_common(path) or path == COMMON else ("-",)


def _has_common(path: Path) -> bool:
    return any(path.is_relative_to(SHELL / name) for name in WITH_COMMON)


@pytest.mark.parametrize(
    "name",
    ["scripts/bench", "scripts/check", "scripts/demo", "scripts/docs", "scripts/release", "scripts/test", ".ci/run"],
)
def test_a_command_that_people_type_can_be_executed(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)


def test_the_lab_says_what_it_does_while_it_runs(tmp_path: Path) -> None:
    """A line when a file starts, when a test of it ends, and when it ends itself; and one now and then in between."""
    for name in ("test_good.py", "test_bad.py"):
        (tmp_path / name).write_text("# not run by this test\n")
    gate, run = tmp_path / "gate", tmp_path / "run.sh"
    # As run.sh is called: PYTHON -m pytest -v FILE. It ends once the gate is there, within a minute.
    run.write_text(
        'echo "$5::test_one PASSED   [ 50%]"\n'
        'n=0; while [ ! -e "$GATE" ] && [ "$n" -lt 600 ]; do sleep 0.1; n=$((n + 1)); done\n'
        'echo "output of $5"; case $5 in *bad*) exit 1 ;; esac\n'
    )
    env = {"GPUNODE_LAB_FOLDER": str(tmp_path), "GPUNODE_LAB_RUN": str(run), "GPUNODE_LAB_BEAT_S": "0"}
    with subprocess.Popen(
        ("sh", str(ROOT / "tests/lab/side-by-side.sh"), "python3"),
        env={**os.environ, **env, "GPUNODE_LAB_JOBS": "2", "GATE": str(gate)},
        stdout=subprocess.PIPE,
        text=True,
    ) as lab:
        assert lab.stdout is not None
        said = []
        for line in lab.stdout:
            said.append(line)
            ended = {name for name in ("good", "bad") if f"lab: test_{name}.py::test_one PASSED   [ 50%]\n" in said}
            if len(ended) == 2 and "0 of 2 files ended; under way: test_" in line:
                gate.touch()
    assert lab.returncode != 0, "a failed file is the failure of all"
    text = "".join(said)
    assert gate.exists(), text
    for name, code in (("good", 0), ("bad", 1)):
        path = tmp_path / f"test_{name}.py"
        assert f"lab: starts {path}\n" in text
        assert re.search(
            rf"== {path}\noutput of {path}\nlab: ended {path} after \d+ s, exit {code}; [01] of 2 files left", text
        )


def test_check_names_the_packages_that_it_lacks(tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "one"
    script.parent.mkdir()
    script.write_text(f'. "{ROOT}/scripts/lib.sh"\nPATH={tmp_path}\nmissing_tools\n')
    (tmp_path / "curl").write_text("#!/bin/sh\n")
    (tmp_path / "curl").chmod(0o755)
    done = subprocess.run(("sh", str(script)), capture_output=True, text=True, check=True)
    assert "busybox-static" in done.stdout.split()
    assert "curl" not in done.stdout.split()


def test_what_runs_in_the_environment_keeps_its_compiled_files(tmp_path: Path) -> None:
    for name, text in {"pyproject.toml": "", "gpunode/__init__.py": "", "venv/bin/python": "#!/bin/sh\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    script = tmp_path / "scripts" / "one"
    script.parent.mkdir()
    script.write_text(
        f'. "{ROOT}/scripts/lib.sh"\n'
        'echo "dev $(cksum <"$ROOT/pyproject.toml") $(cksum <"$ROOT/gpunode/__init__.py")" >"$VENV/.gpunode-ready"\n'
        "environment dev\nenv\n"
    )
    env = {**os.environ, "GPUNODE_VENV": str(tmp_path / "venv"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(("sh", str(script)), env=env, capture_output=True, text=True, check=True)
    assert "GPUNODE_VENV=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout


def test_all_shell_of_the_product_lies_under_one_roof() -> None:
    strays = [path for directory in ("gpunode", "templates") for path in (ROOT / directory).rglob("*.sh")]
    assert [path for path in strays if not path.is_relative_to(SHELL)] == []
    collection = ROOT / "templates" / "export" / "ansible"  # whose files Ansible's own tools look at as they are
    others = {path.suffix for path in (ROOT / "templates").rglob("*.*") if not path.is_relative_to(collection)}
    assert others == {".j2", ".css", ".js"}
    assert {path.suffix for path in collection.rglob("*.*")} == {".j2", ".md", ".py", ".yml"}
