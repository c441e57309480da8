"""`gpunode self check` as it is typed: of a checkout, of an installed release, of one that somebody edited."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gpunode_release.source import Source
from gpunode_release.tree import add_package, write_manifest

from gpunode.cli.app import main

ROOT = Path(__file__).parents[2]
SOURCE = Source(ROOT, "0123456789abcdef0123456789abcdef01234567", 1764000000, ())


def test_a_checkout_is_no_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["self", "check"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert "this gpunode is not a release" in err
    assert "RELEASE.json" in err
    assert "docs/how-to/install.md" in err


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lib = tmp_path_factory.mktemp("site")
    add_package(ROOT, lib)
    for cache in [*lib.rglob("__pycache__")]:
        shutil.rmtree(cache)
    write_manifest(lib, SOURCE, "0.1.0", "wheel", whole=False)
    return lib


def asked(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from gpunode.cli.app import run; run()"
    return subprocess.run(
        (sys.executable, "-B", "-c", program, str(site), "self", "check", *words),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_release_is_compared_file_by_file(site: Path) -> None:
    told = asked(site)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("gpunode 0.1.0 (wheel), commit 0123456789ab of 2025-11-24: all ")

    (site / "gpunode/added\x1b[2J.py").touch()
    with (site / "gpunode/errors.py").open("a") as file:
        file.write("# edited\n")
    told = asked(site)
    assert (told.returncode, told.stderr) == (1, "")
    lines = told.stdout.splitlines()
    assert [line.split()[-1] for line in lines[:2]] == ["release", "changed"]
    assert lines[1].startswith("gpunode/errors.py ")
    assert lines[2].endswith(": 2 differences: install it again")
    assert "\x1b" not in told.stdout

    data = json.loads(asked(site, "--json").stdout)
    assert data["schema"] == "gpunode.self-check/1"
    assert [one["what"] for one in data["differences"]] == ["not of the release", "changed"]

    (site / "gpunode/RELEASE.json").write_text("{}")
    told = asked(site)
    assert (told.returncode, told.stdout) == (1, "")
    assert "differs from every release" in told.stderr
