"""How many log in to one sshd at once.

More than MaxStartups allows it drops at random, before it says its version (sshd_config(5); 10:30:100 unless set).
A run of many hosts through one jump host is such a crowd. Nobody waits until a connection was dropped; then few go in
at a time, and fewer where that is still too many. Whoever was dropped tries again after a pause of random length.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

_FEW = 8  # sshd drops nobody below 10 unless it is set lower
_TRIES = 20  # of one of a crowd: some two minutes of pauses, as long as sshd gives a login (LoginGraceTime)
_TRIES_ALONE = 4  # others crowd that sshd, or it is none: some seconds
_LONGEST_S = 8.0  # a pause, on average
_IN_LINE_S = 120.0  # then one goes in all the same


class Crowd:
    """Those of this run that log in to one address."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._visitors = 0
        self._limit = 2 * _FEW * 1000
        self._drops = 0  # that changed the limit

    @contextmanager
    def visit(self) -> Iterator[None]:
        """From the first try to the last."""
        with self._changed:
            self._visitors += 1
        try:
            yield
        finally:
            with self._changed:
                self._visitors -= 1

    @property
    def tries(self) -> int:
        """How often a connection that is dropped again and again is dialled."""
        return _TRIES if self._visitors > 1 else _TRIES_ALONE

    @contextmanager
    def place(self, limit_s: float = _IN_LINE_S) -> Iterator[int]:
        """Within it one logs in. Yields what `dropped` wants to know."""
        with self._changed:
            self._changed.wait_for(lambda: self._inside < self._limit, limit_s)
            self._inside += 1
            drops = self._drops
        try:
            yield drops
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def dropped(self, drops: int) -> None:
        """Many are dropped at once: only the first of those that went in under one limit makes it smaller."""
        with self._changed:
            if drops == self._drops:
                self._limit = max(1, min(self._limit // 2, _FEW))
                self._drops += 1


def pause_s(number: int) -> float:
    """Before try `number`, from 0 on: longer each time, and random, so that the dropped do not come together."""
    return min(_LONGEST_S, 0.5 * 2.0 ** min(number, 10)) * random.uniform(0.5, 1.5)


_lock = threading.Lock()
_crowds: WeakValueDictionary[str, Crowd] = WeakValueDictionary()  # as long as somebody is there


def crowd_at(address: str) -> Crowd:
    """That of an address, for all threads of this run."""
    with _lock:
        return _crowds.setdefault(address, Crowd())
