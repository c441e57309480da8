"""What a person sees for each recorded host. GPUNODE_UPDATE_GOLDEN=1 rewrites; the reviewer reads the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpunode.cli.app import main

EXAMPLES = Path(__file__).parent.parent / "examples" / "hosts"
GOLDEN = Path(__file__).parent / "golden"
HOSTS = sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file())
# A key that nobody published is asked for; this fingerprint is made up and stands for the one a person would give.
TRUST = ("--trust-key", "0123456789ABCDEF0123456789ABCDEF01234567")
OPTIONS = {"ubuntu2604-b200": TRUST, "el10-h200": TRUST}


@pytest.mark.parametrize("slug", HOSTS)
def test_the_plan_of_a_recorded_host_is_the_golden_one(
    slug: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parent.parent)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    argv = ["plan", "--recorded", f"examples/hosts/{slug}", *OPTIONS.get(slug, ())]
    code = main(argv)
    shown = capsys.readouterr()
    text = f"$ gpunode {' '.join(argv)}\n{shown.out}{shown.err}exit {code}\n"
    golden = GOLDEN / slug / "plan.txt"
    if os.environ.get("GPUNODE_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_there_is_no_golden_plan_without_its_host() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == HOSTS
