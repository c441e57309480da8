"""sudo's password for all hosts of a run: one host tries it first, so that a mistyped one locks no account."""

from __future__ import annotations

import time
from collections.abc import Callable

from gpunode.transport.secret import Secret
from gpunode.transport.tries import NOT_TRIED, Tries

# What PAM takes to say no is seconds. A host that is silent for longer has hung, and holds the others no more.
_SILENT_S = 30.0
_MOST_WAIT_S = 240.0  # for a turn: sudo itself asks for five minutes (passwd_timeout in sudoers(5))


class SudoPassword:
    """One password for all hosts of a run. A host has a turn from where its sudo asks, so that no other is waited for:
    none that is not reached, and none whose sudo wants no password.
    """

    def __init__(self, secret: Secret, clock: Callable[[], float] = time.monotonic) -> None:
        self._secret = secret
        self._clock = clock
        self._tries = Tries()

    def at_host(self) -> HostPassword:
        return HostPassword(self._secret, self._tries, self._clock)


class HostPassword:
    """The password at one host. One that took it once is given it for each further script, whatever others say."""

    def __init__(self, secret: Secret, tries: Tries, clock: Callable[[], float]) -> None:
        self._secret = secret
        self._tries = tries
        self._clock = clock
        self._proven = False  # it took the password
        self._sent: float | None = None  # when; None: nothing is waited for
        self._turn = False  # the others wait for this host
        self._waits: float | None = None  # since when sudo asks and has no answer
        self._too_long = False
        self.withheld = False  # sudo asked, and there will be no answer

    @property
    def not_tried(self) -> str:
        """Why it will not be sent to this host; "" where it may be."""
        if self._proven:
            return ""
        if self._tries.over:
            return NOT_TRIED
        return f"other hosts did not answer it within {_MOST_WAIT_S:.0f} s" if self._too_long else ""

    def take(self) -> bytes | None:
        """What to send to a sudo that asks; None: nothing now, or, where it is `withheld`, ever."""
        if not self._proven and not self._tries.begin(wait=False):
            now = self._clock()
            self._waits = self._waits if self._waits is not None else now
            self._too_long = now - self._waits >= _MOST_WAIT_S
            self.withheld = bool(self.not_tried)
            return None
        self._turn = not self._proven
        self._waits = None
        self._sent = self._clock()
        return self._secret.reveal().encode() + b"\n"

    def silent(self) -> None:
        """Nothing was heard so far."""
        if self._sent is not None and self._clock() - self._sent >= _SILENT_S:
            self._leave()

    def answered(self, *, taken: bool | None) -> None:
        """sudo took what was sent, or did not; None: nobody knows. Where nothing was sent, nothing is counted."""
        self._waits = None
        if self._sent is None:
            return
        self._sent = None
        if taken is not None:
            if not (taken and self._proven):  # a host counts once as one that took it
                self._tries.count(taken=taken)
            self._proven = taken
        self._leave()

    def _leave(self) -> None:
        if self._turn:
            self._turn = False
            self._tries.leave()
