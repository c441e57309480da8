"""Pure-Python dependencies of gpunode as a directory that any Python 3.11 or later can import from.

Built before the lab enters its network namespace (`python -m tests.lab.site`, done by run.sh) and cached by the
dependencies' hash.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import tomlkit

from .shell import sh
from .storage import cache, locked

BINARY = {"paramiko"}  # reaches other hosts only, and its dependencies are compiled for one Python
ROOT = Path(__file__).parents[2]


def site_path(pyproject: Path) -> Path:
    """Where build_site puts the packages; may not exist yet."""
    key = hashlib.sha256("\n".join([sys.version, *_requirements(pyproject)]).encode()).hexdigest()[:12]
    return cache() / "site" / key


def build_site(pyproject: Path = ROOT / "pyproject.toml") -> Path:
    site = site_path(pyproject)
    with locked("site"):
        if not site.exists():
            fresh = site.with_name(f"{site.name}.{os.getpid()}")
            sh(
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-compile",
                "--target",
                fresh,
                *_requirements(pyproject),
            )
            _drop_compiled(fresh)
            fresh.rename(site)
    return site


def _requirements(pyproject: Path) -> list[str]:
    wanted = tomlkit.parse(pyproject.read_text()).unwrap()["project"]["dependencies"]
    return sorted(line for line in wanted if not any(line.lower().startswith(name) for name in BINARY))


def _drop_compiled(site: Path) -> None:
    """An extension of this Python fits no other; PyYAML and MarkupSafe fall back to Python where theirs is missing."""
    for extension in site.rglob("*.so"):
        extension.unlink()


if __name__ == "__main__":
    try:
        print(build_site())
    except (RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"lab: no dependencies for local runs of gpunode: {error}")
