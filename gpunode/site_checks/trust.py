"""Whose files are believed: those that only root, or the user who runs gpunode, can change or exchange.

The rule of shell/trust.sh, for this machine. An access list that lets somebody else write shows in the group's bits of
the mode. The sticky bit does not help.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def why_mistrusted(path: Path) -> str:
    """Who else may put something in its place, as the user is told; "" where nobody may. Raises OSError.

    Both ways are looked at: the one that was typed, with its links, and the one that they lead to.
    """
    typed = Path(os.path.abspath(path))
    real = typed.resolve(strict=True)
    places = dict.fromkeys((*reversed(typed.parents), typed, *reversed(real.parents), real))
    return next((why for place in places if (why := _why(place, place.lstat()))), "")


def _why(place: Path, status: os.stat_result) -> str:
    if status.st_uid not in {0, os.geteuid()}:
        return f"{place} belongs to user {status.st_uid}"
    if stat.S_ISLNK(status.st_mode):  # its mode says nothing: who may write its directory may replace it
        return ""
    if status.st_mode & 0o022:
        return f"{place} can be written by {'its group' if status.st_mode & 0o020 else 'everybody'}"
    return ""
