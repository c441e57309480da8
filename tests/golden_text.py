"""What a command prints about a recorded host, held against a file of tests/golden.

GPUNODE_UPDATE_GOLDEN=1 rewrites; the reviewer reads the diff.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpunode.cli.app import main

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "hosts"
GOLDEN = Path(__file__).parent / "golden"


def assert_golden(
    slug: str,
    file: str,
    verb: Sequence[str],
    more: Sequence[str],
    patch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    patch.chdir(ROOT)
    patch.setenv("NO_COLOR", "1")
    patch.setenv("COLUMNS", "120")
    argv = [*verb, "--recorded", f"examples/hosts/{slug}", *more]
    code = main(argv)
    shown = capsys.readouterr()
    out = re.sub(r"\s+·\s+\d+\.\d\s+s$", "", shown.out, flags=re.MULTILINE)  # how long it took
    text = f"$ gpunode {' '.join(argv)}\n{out}{shown.err}exit {code}\n"
    golden = GOLDEN / slug / file
    if os.environ.get("GPUNODE_UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
