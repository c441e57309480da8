"""ansible-core of Debian 12's version and the newest for this Python, each in a virtual environment, with ansible-lint.

Built before the lab enters its network namespace (`python -m tests.lab.ansible_core`, done by tests.lab.prepare).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from .shell import sh
from .storage import cache, locked

# Debian 12 has 2.14, which is the oldest that the collection asks for.
PACKAGES = {"2.14": ("ansible-core==2.14.18",), "newest": ("ansible-core", "ansible-lint")}


def programs(version: str) -> Path:
    """The directory of ansible-playbook. Raises RuntimeError where it was not built."""
    directory = _environment(version) / "bin"
    if not (directory / "ansible-playbook").exists():
        raise RuntimeError("no ansible-core; run python -m tests.lab.ansible_core")
    return directory


def build() -> None:
    with locked("ansible"):
        for version, packages in PACKAGES.items():
            if (_environment(version) / "bin" / "ansible-playbook").exists():
                continue
            shutil.rmtree(_environment(version), ignore_errors=True)
            sh(sys.executable, "-m", "venv", _environment(version))
            pip = _environment(version) / "bin" / "pip"
            sh(pip, "install", "--quiet", "--disable-pip-version-check", *packages)


def _environment(version: str) -> Path:
    return cache() / "ansible" / f"{version}-{sys.version_info.major}.{sys.version_info.minor}"


if __name__ == "__main__":
    build()
