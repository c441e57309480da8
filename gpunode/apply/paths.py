"""Where gpunode keeps what it needs on a host."""

from __future__ import annotations

import re

STATE = "/var/lib/gpunode"  # the same as in shell/common.sh


def backup_path(run_id: str, path: str) -> str:
    """Where the old bytes go; put.sh adds their hash, so two writes of one file in a run keep both."""
    return f"{STATE}/backup/{slug(run_id)}/{slug(path)}"


def inventory_path(run_id: str) -> str:
    """Where the names of all packages are kept as they were before this run."""
    return f"{STATE}/backup/{slug(run_id)}/packages"


def slug(text: str) -> str:
    """A file name for any text: letters, digits, dot, dash and underscore."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "x"
