"""check --format html, from the command line to the file."""

from __future__ import annotations

import json
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from gpunode.cli.app import main
from gpunode.errors import ExitCode
from gpunode.render.matrix.table import STANDINGS

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
READY, BARE = "debian12-ready", "el9-a10"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    for slug in (READY, BARE):
        (tmp_path / "fleet" / slug).mkdir(parents=True)
        shutil.copy(EXAMPLES / slug / "facts.txt", tmp_path / "fleet" / slug)
    return tmp_path / "fleet"


def hosts_of(page: Path) -> dict[str, Any]:
    (block,) = re.findall(r'id="fleet">(.*?)</script>', page.read_text(), re.DOTALL)
    return {host["name"]: host for host in json.loads(block)["hosts"]}


def test_the_hosts_of_a_run_are_rows_of_one_page(
    fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "fleet.html"
    code = main(["check", "-q", "--recorded", str(fleet), "--format", "html", "--output", str(page)])
    assert (code, capsys.readouterr().out) == (ExitCode.FAILED, "")
    assert {name: host["standing"] for name, host in hosts_of(page).items()} == {
        READY: STANDINGS.index("pass"),
        BARE: STANDINGS.index("fail"),
    }
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_broken_recording_is_a_row_with_its_reason(fleet: Path, tmp_path: Path) -> None:
    (fleet / READY / "facts.txt").write_text("nonsense\x1b[2J</script>")
    page = tmp_path / "fleet.html"
    main(["check", "-q", "--recorded", str(fleet), "--format", "html", "--output", str(page)])
    host = hosts_of(page)[READY]
    assert host["standing"] == 0
    assert "not a whole recording" in host["why"][0]
    assert page.read_text().count("</script>") == 2


def test_one_host_is_a_page_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--recorded", str(EXAMPLES / READY), "--format", "html"]) == ExitCode.DONE
    assert capsys.readouterr().out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--watch", "5"], "html is one document"), (["-v"], "-v is for text"), (["--fix"], "is not a format of this")],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_go_together_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = [] if "--watch" in words else ["--recorded", str(EXAMPLES / READY)]
    assert main(["check", *words, *host, "--format", "html"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())
