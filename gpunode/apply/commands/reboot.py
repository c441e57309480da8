"""Reboot a host and wait until it is back, by the kernel's boot id and never by uptime or a clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from gpunode.apply.journal.entries import Journal
from gpunode.apply.script import Host, parse_reply
from gpunode.errors import TransportError
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.transport.base import FINAL

BETWEEN_S = 3.0


def ask_for_reboot(host: Host, journal: Journal) -> str:
    """Ask the host to reboot in a second; its boot id before."""
    word, rest = parse_reply(host.run("commands/reboot", host.token, journal.pending()))
    journal.delivered()
    return rest if word == "boot" else ""


def reboot_and_wait(
    host: Host,
    journal: Journal,
    wait_s: float,
    *,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Reboot; the new boot id.

    Raises TransportError when the host is not back within `wait_s`; at once where it refuses the password of sudo, or
    its key is refused.
    """
    before = ask_for_reboot(host, journal)
    end = clock() + wait_s
    last = "it still answers with its old boot id"
    while clock() < end:
        pause(BETWEEN_S)
        host.transport.reconnect()
        try:
            done = host.transport.run("cat /proc/sys/kernel/random/boot_id", timeout_s=15)
        except FINAL:
            raise
        except TransportError as error:  # expected while it is down; the last one is the evidence
            last = error.problem
            continue
        now = done.stdout.decode("ascii", "replace").strip()
        if done.code == 0 and now and now != before:
            return now
    raise TransportError(
        f"{host.transport.target}: did not come back within {wait_s:.0f} s after the reboot",
        evidence=last,
        remedy=Remedy(
            RepairAction.POWER_CYCLE,
            "look at its console; once it is up, run ",
            AGAIN,
            " again: it continues from what is there",
        ),
    )
