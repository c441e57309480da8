"""The strings and numbers that keys and certificates consist of (RFC 4251, section 5), read strictly."""

from __future__ import annotations


class Fields:
    """One after the other. Raises ValueError where less is left than is announced."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    @property
    def more(self) -> bool:
        return self.place < len(self._data)

    def number(self, size_bytes: int) -> int:
        """A uint32 (4) or uint64 (8)."""
        return int.from_bytes(self._taken(size_bytes), "big")

    def string(self) -> bytes:
        return self._taken(self.number(4))

    def _taken(self, size_bytes: int) -> bytes:
        end = self.place + size_bytes
        if end > len(self._data):
            raise ValueError("it is cut off")
        piece, self.place = self._data[self.place : end], end
        return piece


def strings(data: bytes) -> list[bytes]:
    """All of `data`, where it is nothing but strings: a public key is, its type first. Raises ValueError."""
    fields, found = Fields(data), []
    while fields.more:
        found.append(fields.string())
    return found


def packed(parts: list[bytes]) -> bytes:
    """The other way round."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
