"""gpunode as one file: what a host's bare python3 makes of it, which has none of our packages."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.cli.app import main
from gpunode.release import zipapp

HOST = Path(__file__).parent.parent.parent / "examples/hosts/debian12-ready"
BARE = (sys.executable, "-I", "-S")  # no site-packages, no PYTHONPATH, not this directory


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "gpunode.pyz"
    assert main(["self", "zipapp", "--output", str(path)]) == 0
    return path


def run(packed: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """By a name that is relative to where it is started, as people type it."""
    state = {"XDG_STATE_HOME": str(packed.parent / "state"), "PATH": os.environ["PATH"]}
    return subprocess.run(
        (*BARE, packed.name, *words), cwd=packed.parent, env=state, text=True, capture_output=True, check=False
    )


def test_it_judges_and_plans_as_the_installed_one_does(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("check", "plan"):
        by_file = run(packed, verb, "--recorded", str(HOST), "--json")
        capsys.readouterr()
        assert main([verb, "--recorded", str(HOST), "--json"]) == by_file.returncode, by_file.stderr
        mine, theirs = json.loads(capsys.readouterr().out), json.loads(by_file.stdout)
        for whole in (mine, theirs):
            whole.pop("seconds_s")  # how long it took
        assert mine == theirs


def test_every_template_and_script_is_in_it(packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
    root = Path(resources.PACKAGE)
    wanted = {f"gpunode/{path.relative_to(root).as_posix()}" for path in root.rglob("*.sh")}
    wanted |= {
        f"gpunode/templates/{path.relative_to(root.parent / 'templates').as_posix()}"
        for path in (root.parent / "templates").rglob("*.*")
    }
    assert wanted <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def test_no_yaml_of_the_catalog_is_parsed_again(packed: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from gpunode.catalog import documents\n"
        "documents._parsed = None\n"
        "documents.read_all()\n"
        "print(len(documents.document('gpus.yaml')), len(documents.names()))"
    )
    ended = subprocess.run((*BARE, "-c", program, str(packed)), text=True, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout.split()[1]) > 5


def test_for_other_hosts_it_says_in_a_sentence_what_it_lacks(packed: Path) -> None:
    ended = run(packed, "check", "--ssh", "gpu01")
    assert ended.returncode == 4
    assert "this gpunode has no SSH" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_old_python_is_told_before_anything_of_ours_is_read(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        text = archive.read("__main__.py").decode()
    (tmp_path / "old.py").write_text("import sys\nsys.version_info = (3, 6, 8)\n" + text)
    ended = subprocess.run((*BARE, str(tmp_path / "old.py")), text=True, capture_output=True, check=False)
    assert ended.returncode == 4
    assert "is Python 3.6, and gpunode needs 3.10 or newer" in ended.stderr


def test_two_builds_are_the_same_bytes_and_the_printed_hash_is_theirs(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.umask(0o077)
    try:
        assert main(["self", "zipapp", "--output", str(tmp_path / "again.pyz")]) == 0
    finally:
        os.umask(before)
    digest, _, name = capsys.readouterr().out.strip().partition("  ")
    assert name == str(tmp_path / "again.pyz")
    assert hashlib.sha256((tmp_path / "again.pyz").read_bytes()).hexdigest() == digest
    assert (tmp_path / "again.pyz").read_bytes() == packed.read_bytes()


def test_a_zipapp_makes_no_other_and_says_what_to_copy(packed: Path) -> None:
    ended = run(packed, "self", "zipapp", "--output", "again.pyz")
    assert ended.returncode == 4
    assert f"copy {packed}" in ended.stderr


def test_after_a_reboot_it_is_started_as_the_file_that_it_is(packed: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.argv = ['gpunode.pyz']\n"
        "from gpunode.fleet.own_command import own_command; print(own_command())"
    )
    ended = subprocess.run(
        (*BARE, "-c", program, packed.name), cwd=packed.parent, text=True, capture_output=True, check=False
    )
    assert ended.stdout.strip() == repr((sys.executable, str(packed))), ended.stderr


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('tomli>=2.0; python_version < "3.11"', ["tomli"]),
        ('importlib-metadata; python_version < "3.8"', []),
        ("colorama; platform_system == 'Windows'", []),
        ('Babel>=2.7 ; extra == "i18n"', []),
        ("typing_extensions (>=3.7.4.3)", ["typing-extensions"]),
    ],
)
def test_which_requirements_a_host_has(line: str, names: list[str]) -> None:
    class Package:
        requires = (line,)

    assert list(zipapp._required(Package())) == names  # type: ignore[arg-type]


def test_a_shell_can_start_it(packed: Path) -> None:
    assert packed.read_bytes().startswith(zipapp.SHEBANG)
    assert packed.stat().st_mode & 0o111
    assert zipfile.is_zipfile(io.BytesIO(packed.read_bytes()))
