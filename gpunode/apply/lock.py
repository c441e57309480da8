"""One gpunode a host: a lock in /run/gpunode with its owner inside and its heartbeat as mtime (lock.sh).

Next to it the heartbeat in seconds since the boot: the younger of the two counts, since clocks are set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from functools import cache
from pathlib import Path

from gpunode.apply.script import SHORT_S, Host, in_turn, parse_reply
from gpunode.errors import HostLocked, TransportError
from gpunode.foreign import read_json, whole_number
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.transport.base import Completed, Transport
from gpunode.values import dataclass

STALE_S = 60  # every script of a running gpunode beats, the longest silence is a 20 s wait


@cache
def pid_space() -> str:
    """This boot of this machine and its pid namespace: two containers of one name number their processes alike."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    except (OSError, UnicodeDecodeError):
        return ""


@dataclass(frozen=True)
class Owner:
    """Who holds a lock. `token` is unlike any other run's: pid and start time, or random."""

    host: str  # the controller's name
    pid: int  # on the controller
    token: str
    user: str = ""
    since: str = ""  # by the controller's clock: "2026-11-23T02:04:33.120+00:00"
    pids: str = field(default_factory=pid_space)  # where `pid` means something; "": nobody knows


Alive = Callable[[int], bool]  # is this pid of the controller still running?


class HostLock:
    """The lock of one host: peek while only looking, take before the first write, release at the end."""

    def __init__(self, transport: Transport, owner: Owner, alive: Alive) -> None:
        self.host = Host(transport, owner.token)
        self._outside = Host(transport)  # without a token: these scripts run before the lock is ours
        self._owner = owner
        self._alive = alive
        self._is_ours = False

    def peek(self) -> None:
        """Read-only. Raises HostLocked when a living gpunode holds it.

        Of a lock whose heartbeat lies ahead, since the host's clock was set back, `take` decides: it counts a minute
        from then on, which nobody could see who only looks.
        """
        word, rest = self._ask("peek")
        if not rest.startswith("-"):
            self._check(word, rest)

    def take(self, then: Sequence[str] = ()) -> Completed | None:
        """Raises HostLocked, naming the holder; one that died, or whose heartbeat stopped for a minute, is replaced.

        `then`: a script, and its arguments behind the token, that runs in the same round trip once the lock is ours;
        its answer, as it is. None: it did not run, since there was a holder to replace first.
        """
        text = self._text()
        done = self._take(text, then)
        word, rest = parse_reply(done)
        replaced = word == "held" and self._check(word, rest) is not None
        if replaced:
            word, rest = self._ask("break", rest.partition(" ")[2], text)
            if word == "held":
                raise self._locked(rest)
        self._is_ours = True
        if replaced:
            return None
        return replace(done, stdout=done.stdout.partition(b"\n")[2]) if then else None

    def _take(self, text: str, then: Sequence[str]) -> Completed:
        if not then:
            return self._outside.run("lock", "take", text)
        script, *arguments = then
        both = in_turn(("lock", "take", text), "taken", (script, self._owner.token, *arguments))
        return self._outside.transport.run(both, timeout_s=SHORT_S)

    def keep(self) -> None:
        """A heartbeat while nothing else runs there. Raises HostLocked when it is not ours any more."""
        self.host.run("lock", "keep", self._owner.token)

    def release(self, lines: str = "") -> None:
        """Safe when it was never taken or belongs to someone else by now.

        `lines`: which its holder still has for the journal; they are written and flushed before. Raises HostLocked
        where the lock is not ours, and StepFailed where they cannot be written; it is ours still then.
        """
        self._ask("release", self._owner.token, lines)
        self._is_ours = False

    @contextmanager
    def held(self, then: Sequence[str] = ()) -> Iterator[Completed | None]:
        """Ours from here to the end, however that comes. Takes, gives and raises as `take` does.

        Of a host that was lost meanwhile what lost it is told, and not that its lock cannot be given back: that one is
        taken over after a minute without a heartbeat, or went with the reboot.
        """
        answer = self.take(then)
        try:
            yield answer
        except BaseException:
            with suppress(TransportError):
                self.release()
            raise
        if self._is_ours:  # else it was given back within
            self.release()

    def _ask(self, *words: str) -> tuple[str, str]:
        return parse_reply(self._outside.run("lock", *words))

    def _text(self) -> str:
        owner = self._owner
        return json.dumps(asdict(owner))

    def _check(self, word: str, rest: str) -> Owner | None:
        """The stale holder, None when free. Raises HostLocked for one that lives."""
        if word != "held":
            return None
        age, _, text = rest.partition(" ")
        holder = parse_owner(text)
        if holder is None:
            if _age_s(age) > STALE_S:
                return Owner("", 0, "", pids="")
            raise self._locked(rest)
        ours = holder.token == self._owner.token  # it was taken, or given back, and the answer was lost
        if ours or is_stale(holder, _age_s(age), self._owner, self._alive):
            return holder
        raise self._locked(rest)

    def _locked(self, rest: str) -> HostLocked:
        age, _, text = rest.partition(" ")
        holder = parse_owner(text)
        who = _named(holder) if holder else text
        return HostLocked(
            f"{self.host.transport.target}: another gpunode is at work on this host: {who}",
            evidence=f"/run/gpunode/lock, last heartbeat {age} s ago",
            remedy=Remedy(
                RepairAction.WAIT,
                "wait for it to end, then run ",
                AGAIN,
                f" again; a lock without a heartbeat for {STALE_S} s is taken over",
            ),
        )


def _named(holder: Owner) -> str:
    """ "pid 100 on controller (root), since 2026-11-23T02:04:33.120+00:00"."""
    user = f" ({holder.user})" if holder.user else ""
    return f"pid {holder.pid} on {holder.host}{user}{f', since {holder.since}' if holder.since else ''}"


def is_stale(holder: Owner, age_s: int, ours: Owner, alive: Alive) -> bool:
    """Whether the holder is gone: it ran here, in our pid space, and died, or its heartbeat stopped for a minute.

    After a reboot of the host there is no question: /run, and the lock in it, is gone.
    """
    here = holder.host == ours.host and holder.pids == ours.pids != ""
    return age_s > STALE_S or (here and not alive(holder.pid))


def _age_s(word: str) -> int:
    """The lock's age as lock.sh reports it; one that is no number is no reason to take a lock over."""
    return max(whole_number(word) or 0, 0)


def parse_owner(text: str) -> Owner | None:
    """The lock's content; None when it is not one of ours."""
    try:
        fields = read_json(text, own=True)
        pid = fields["pid"]
        # A pid that no process can have is nobody's.
        return Owner(
            str(fields["host"]),
            pid if type(pid) is int and 0 < pid < 1 << 31 else 0,
            str(fields["token"]),
            str(fields.get("user", "")),
            str(fields.get("since", "")),
            str(fields.get("pids", "")),
        )
    except (ValueError, KeyError, TypeError):
        return None
