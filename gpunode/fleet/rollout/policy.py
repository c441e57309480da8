"""How far and how fast a run goes through a fleet: what was asked for, and what that is in numbers of hosts."""

from __future__ import annotations

import re
from dataclasses import field

from gpunode.errors import UsageError
from gpunode.fleet.rollout.waves import wave_sizes
from gpunode.fleet.rollout.window import Window
from gpunode.values import dataclass

MOST = 100_000  # hosts; an inventory is far below it
MOST_REBOOT_S = 24 * 3600
TENTH = 10


@dataclass(frozen=True)
class Share:
    """So many hosts, or so many of a hundred."""

    number: int
    percent: bool = False

    def of(self, hosts: int) -> int:
        """In hosts, rounded down."""
        return hosts * self.number // 100 if self.percent else self.number

    @staticmethod
    def parse(flag: str, text: str, *, least: int) -> Share:
        """ "3" or "10%". Raises UsageError."""
        match = re.fullmatch(r"([0-9]{1,6})(%?)", text)
        most = 100 if match and match[2] else MOST
        if match is None or not least <= int(match[1]) <= most:
            raise UsageError(
                f"{flag} {text[:40]!r} is neither a number of hosts nor a percentage",
                evidence=f"{least} to {MOST}, or {least}% to 100%",
                remedy=f"for example {flag} 3, or {flag} 10%",
            )
        return Share(int(match[1]), bool(match[2]))


NO_LIMIT = Share(MOST)


@dataclass(frozen=True)
class Policy:
    """What was asked for. Percentages are of the hosts on which the run has something to do."""

    canary: int = 0  # hosts that go first, and alone
    batch: Share | None = None  # None: all the others at once
    max_failures: Share | None = None  # None: see `limits`
    max_reboots: Share | None = None  # None: a tenth of a batch
    reboot_wait_s: int | None = None  # until a host is back; None: as long as one host alone has
    window: Window = field(default_factory=Window)

    @property
    def staged(self) -> bool:
        return self.canary > 0 or self.batch is not None


@dataclass(frozen=True)
class Limits:
    """A policy for so many hosts."""

    waves: tuple[int, ...]  # the hosts of each, in order
    canary: bool  # the first wave is the canary: none of it may fail
    max_failures: int | None  # one more stops the run; None: none does
    max_reboots: int  # at once


def limits(policy: Policy, hosts: int) -> Limits:
    """The numbers for `hosts` hosts that have something to do.

    Without a limit of their own a tenth of the hosts may fail where the run has stages, and any number where it has
    none. Never all hosts of more than one reboot together, whatever was asked for: a fleet stays up.
    """
    batch = max(1, policy.batch.of(hosts)) if policy.batch else hosts
    waves = wave_sizes(hosts, policy.canary, batch)
    failures = policy.max_failures or (Share(TENTH, percent=True) if policy.staged else NO_LIMIT)
    batches = waves[1:] if policy.canary else waves
    reboots = policy.max_reboots.of(hosts) if policy.max_reboots else max(batches, default=0) // TENTH
    return Limits(
        waves,
        canary=policy.canary > 0,
        max_failures=None if failures == NO_LIMIT else failures.of(hosts),
        max_reboots=max(1, min(reboots, hosts - 1)),
    )
