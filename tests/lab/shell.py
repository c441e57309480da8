"""Run a command of this machine and complain with its own words when it fails."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path


class CommandFailed(RuntimeError):
    """A tool that the lab needs exited non-zero."""


def sh(*argv: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Standard output of a command that must succeed."""
    words = [str(word) for word in argv]
    done = subprocess.run(words, cwd=cwd, env=env, text=True, capture_output=True, check=False)
    if done.returncode:
        raise CommandFailed(f"{shlex.join(words)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def attempt(*argv: str | Path) -> bool:
    """Whether the command succeeded; for clean-up, where "was not there" is fine."""
    return subprocess.run([str(word) for word in argv], capture_output=True, check=False).returncode == 0
