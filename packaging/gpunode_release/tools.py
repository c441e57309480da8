"""Programs that a build runs, with nothing of the builder's in their environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gpunode_release.faults import ReleaseError
from gpunode_release.source import Source


def missing(*names: str) -> list[str]:
    return [name for name in names if shutil.which(name) is None]


def python_of(tree: Path) -> dict[str, str]:
    """This environment, in which Python finds gpunode and gpunode_release as they are in `tree`, a commit's files."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'packaging'}{os.pathsep}{tree}"}


def run(source: Source, *argv: str, cwd: Path, extra: Mapping[str, str] | None = None) -> str:
    """What it prints. Raises ReleaseError with its last words where it fails."""
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(cwd),  # no ~/.rpmmacros, no ~/.pydistutils.cfg
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOURCE_DATE_EPOCH": str(source.committed_at_s),
        **(extra or {}),
    }
    told = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False, umask=0o022)
    if told.returncode:
        said = (told.stderr.strip() or told.stdout.strip()).splitlines()[-5:]
        raise ReleaseError(f"{argv[0]} ended with {told.returncode}: {' / '.join(said)}")
    return told.stdout
