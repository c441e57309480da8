"""Manual pages and completions, made by the commit's own code and the libraries of the release.

In a Python of its own: this one has the libraries of whoever makes the release, and other versions of them can print
another help.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

from gpunode_release import tools
from gpunode_release.completions import completions
from gpunode_release.man import Edition, exit_codes, man_pages
from gpunode_release.source import Source

_PROGRAM = "import sys; sys.path[:0] = sys.argv[1:3]; from gpunode_release.texts import print_texts; print_texts()"


class Texts(NamedTuple):
    pages: dict[str, str]  # "gpunode-check.1" to text
    completions: dict[str, str]  # "bash/gpunode" to text


def texts_by(site: Path, export: Path, source: Source, version: str, work: Path) -> Texts:
    """`site`: gpunode with its libraries. Raises ReleaseError."""
    words = ("-I", "-c", _PROGRAM, str(export / "packaging"), str(site), str(export), version)
    printed = tools.run(source, sys.executable, *words, str(source.committed_at_s), cwd=work)
    return Texts(**json.loads(printed))


def texts_here(export: Path, version: str, date_s: int) -> Texts:
    """By the gpunode of this Python. Raises ValueError for a commit without a table of exit codes."""
    edition = Edition(version, date_s, exit_codes(export / "docs/reference/exit-codes.md"))
    return Texts(man_pages(edition), completions())


def print_texts() -> None:
    export, version, date_s = sys.argv[3:]
    print(json.dumps(texts_here(Path(export), version, int(date_s))._asdict()))
