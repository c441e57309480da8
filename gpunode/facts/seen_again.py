"""What was made of the same bytes before: hosts of a fleet answer alike, and a host that is asked again as it did.

Only for what depends on its key alone and cannot be changed afterwards: then no host's answer can change what is said
of another one. Two keys are the same only where all of them is.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_MOST = 8192  # entries of each half, and keys that came once


class SeenAgain(Generic[Key, Value]):
    """Bounded, for any thread. What came once is not held, only that it came: most of that is one host's own.

    Two halves: what was asked for since the last turn, and what was before. The younger one full, the older one goes.
    """

    def __init__(self, limit_bytes: int, most: int = _MOST) -> None:
        self._limit_bytes, self._most = limit_bytes // 2, most
        self._young: dict[Key, tuple[Value, int]] = {}
        self._old: dict[Key, tuple[Value, int]] = {}
        self._once: set[int] = set()  # hashes: two keys that share one are held a little too early, and no more
        self._bytes = 0  # of the younger half

    def get(self, key: Key) -> Value | None:
        """What was put for an equal key; None where it is not held."""
        if (found := self._young.get(key)) is None:
            if (found := self._old.get(key)) is None:
                return None
            self._hold(key, *found)
        return found[0]

    def put(self, key: Key, value: Value, size_bytes: int) -> None:
        """`size_bytes`: of key and value, about; held from the second time on, where it is a small part of all."""
        if size_bytes > self._limit_bytes // 8:
            return
        if (mark := hash(key)) in self._once:
            self._hold(key, value, size_bytes)
        else:
            if len(self._once) >= self._most:
                self._once = set()
            self._once.add(mark)

    def _hold(self, key: Key, value: Value, size_bytes: int) -> None:
        """Two threads that come here at once lose an entry, or a few bytes of the count, and nothing else."""
        if self._bytes + size_bytes > self._limit_bytes or len(self._young) >= self._most:
            self._old, self._young, self._bytes = self._young, {}, 0
        self._young[key] = (value, size_bytes)
        self._bytes += size_bytes
