"""When hosts were down, by their own journals: how many at once, and which went down after which came up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from .host import Host

# SD_MESSAGE_USER_STARTUP_FINISHED (sd-messages.h): the boot is complete; in a container init says it with this id.
STARTED = "MESSAGE_ID=eed00a68ffd84e31882105fd973abdd1"


@dataclass(frozen=True)
class Down:
    """One reboot: from the last word of the boot before it to the end of the next one's start; seconds since 1970."""

    host: str
    begin: float
    end: float


def last_down(host: Host) -> Down:
    """Raises AssertionError where it has not rebooted."""
    return Down(host.name, _time(host, "-b -1"), _time(host, f"-b 0 {STARTED} _PID=1"))


def _time(host: Host, which: str) -> float:
    """Of the last entry of these."""
    line = host.nsrun(f"journalctl --sync; journalctl --no-pager -q -n 1 -o json {which}", check=True).stdout
    assert line, f"{host.name} has no entry of {which}"
    return int(json.loads(line)["__REALTIME_TIMESTAMP"]) / 1e6


def most_at_once(downs: Iterable[Down]) -> int:
    """How many of them had a moment in common."""
    edges = sorted(edge for down in downs for edge in ((down.begin, 1), (down.end, -1)))
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
