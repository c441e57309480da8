"""A directory whose files gpunode believes: pytest's own are below /tmp, which everybody may write."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpunode.site_checks.trust import why_mistrusted


@contextmanager
def trusted_directory() -> Iterator[Path]:
    for above in (Path("/run"), Path.home()):
        try:
            if why_mistrusted(above):
                continue
            made = tempfile.TemporaryDirectory(dir=above, prefix=".gpunode-test-")
        except OSError:
            continue
        with made as name:
            yield Path(name)
        return
    pytest.skip("neither /run nor the home directory is writable for this user alone")


def program(directory: Path, name: str, body: str) -> Path:
    return put(directory, name, f"#!/bin/sh\n{body}\n", 0o755)


def put(directory: Path, name: str, text: str, mode: int = 0o644) -> Path:
    path = directory / name
    path.write_text(text)
    path.chmod(mode)
    return path
