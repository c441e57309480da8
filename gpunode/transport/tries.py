"""How many hosts may try one password at one time: whoever keeps accounts for all of them counts the wrong ones."""

from __future__ import annotations

import threading

_MOST_REFUSALS = 2  # faillock and directories lock an account at the third wrong password (faillock.conf(5), deny)
NOT_TRIED = f"{_MOST_REFUSALS} hosts in a row refused it"


class Tries:
    """Of one password. At one time one host more may try it than took it since the last refusal, and when two in a row
    refused it nobody tries it any more. From any thread.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._trying = 0
        self._taken = 0  # since the last refusal
        self._refusals = 0  # in a row

    @property
    def over(self) -> bool:
        """Nobody tries it any more."""
        return self._refusals >= _MOST_REFUSALS

    def begin(self, *, wait: bool) -> bool:
        """Whether to try it now; then `leave` follows. `wait` for a turn: False means that there will be none."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self.over or self._free)
            if self.over or not self._free:
                return False
            self._trying += 1
            return True

    def leave(self) -> None:
        """This try is no longer waited for."""
        with self._changed:
            self._trying -= 1
            self._changed.notify_all()

    def count(self, *, taken: bool) -> None:
        """A host took it or refused it; of one that did neither nothing is counted."""
        with self._changed:
            if not taken:
                self._taken = 0
                self._refusals += 1
            elif not self.over:
                self._taken += 1
                self._refusals = 0

    @property
    def _free(self) -> bool:
        return self._trying <= self._taken
