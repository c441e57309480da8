"""The commit that a release is made of, as files: never the work tree, so nothing uncommitted gets into it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

from gpunode_release.faults import ReleaseError


class Source(NamedTuple):
    root: Path  # the work tree that git looks at
    commit: str
    committed_at_s: int  # SOURCE_DATE_EPOCH of everything
    uncommitted: tuple[str, ...]  # files that differ from it, which are not in the release


def source_of(root: Path, commit: str = "HEAD") -> Source:
    """`commit` of the repository at `root`. Raises ReleaseError where there is none."""
    commit, committed_at_s = _git(root, "log", "-1", "--format=%H %ct", commit, "--").split()
    changed = _git(root, "status", "--porcelain", "--no-renames").splitlines()
    return Source(root, commit, int(committed_at_s), tuple(line[3:] for line in changed))


def export(source: Source, into: Path) -> Path:
    """The files of the commit, whatever the umask. Answers `into`."""
    told = subprocess.run(
        ("git", "-c", "tar.umask=0022", "archive", "--format=tar", source.commit),
        cwd=source.root,
        capture_output=True,
        check=False,
    )
    if told.returncode:
        raise ReleaseError(f"git archive: {told.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(told.stdout)) as archive:
        archive.extractall(into, filter="data")
    return into


def clone(source: Source, into: Path) -> Path:
    """The repository without any files next to it. Answers `into`. Raises ReleaseError."""
    _git(source.root, "clone", "--quiet", "--no-checkout", str(source.root), str(into))
    return into


def _git(root: Path, *words: str) -> str:
    told = subprocess.run(("git", *words), cwd=root, capture_output=True, text=True, check=False)
    if told.returncode:
        raise ReleaseError(f"git {words[0]}: {told.stderr.strip()}")
    return told.stdout
