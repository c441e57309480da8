"""Whose primary keys a keyring file holds, read without gpg: the packets of RFC 4880, section 4."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator

LIMIT_BYTES = 1 << 20  # NVIDIA's keys are below 5 kB
SECRET_KEY, PUBLIC_KEY, MARKER, USER_ID, SUBKEY, USER_ATTRIBUTE, SIGNATURE = 5, 6, 10, 13, 14, 17, 2
IN_KEYRINGS = (SIGNATURE, PUBLIC_KEY, MARKER, 12, USER_ID, SUBKEY, USER_ATTRIBUTE)  # 12: gpg's own trust packet
_BEGIN, _END = b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"-----END PGP PUBLIC KEY BLOCK-----"


def primary_fingerprints(keyring: bytes) -> frozenset[str]:
    """Full fingerprints (40 upper-case hex digits) of the primary keys in a keyring, binary or in armour.

    Signatures are not checked: that is the work of whoever writes or uses the file. Raises ValueError for what is not
    a plain sequence of version 4 public keys: a keyring that cannot be checked is not the right one.
    """
    if len(keyring) > LIMIT_BYTES:
        raise ValueError(f"it is larger than {LIMIT_BYTES} bytes")
    binary = _dearmored(keyring) if _BEGIN in keyring else keyring
    found = []
    for tag, body in _packets(binary):
        if tag not in IN_KEYRINGS:
            raise ValueError(f"it holds a packet of type {tag}, which is no public key's")
        if tag == PUBLIC_KEY:
            if body[:1] != b"\x04":
                raise ValueError("it holds a key that is not of version 4")
            found.append(hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest())
    if not found:
        raise ValueError("it holds no key")
    return frozenset(fingerprint.upper() for fingerprint in found)


def _dearmored(text: bytes) -> bytes:
    """All blocks of the file, one after the other; the checksum line (=abcd) and the headers are left out."""
    found = []
    for part in text.split(_BEGIN)[1:]:
        inner, end, _ = part.partition(_END)
        if not end:
            raise ValueError("its armour has no end")
        lines = [line.strip() for line in inner.split(b"\n")[1:]]
        start = lines.index(b"") + 1 if b"" in lines else 0
        wanted = b"".join(line for line in lines[start:] if not line.startswith(b"="))
        try:
            found.append(base64.b64decode(wanted, validate=True))
        except binascii.Error:
            raise ValueError("its armour is damaged") from None
    return b"".join(found)


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("it is no OpenPGP file")
        tag, start, length = _new(data, at) if head & 0x40 else _old(data, at)
        if start + length > len(data):
            raise ValueError("it is truncated")
        yield tag, data[start : start + length]
        at = start + length


def _new(data: bytes, at: int) -> tuple[int, int, int]:
    """(tag, start of the body, its length) of a packet with a new header (4.2.2)."""
    tag, first = data[at] & 0x3F, data[at + 1 : at + 2]
    if not first or 224 <= first[0] < 255:
        raise ValueError("it has a packet without a length")
    if first[0] < 192:
        return tag, at + 2, first[0]
    if first[0] < 224:
        return tag, at + 3, ((first[0] - 192) << 8) + _number(data, at + 2, 1) + 192
    return tag, at + 6, _number(data, at + 2, 4)


def _old(data: bytes, at: int) -> tuple[int, int, int]:
    """The same of a packet with an old header (4.2.1)."""
    size = (1, 2, 4, 0)[data[at] & 3]
    if not size:
        raise ValueError("it has a packet without a length")
    return (data[at] & 0x3C) >> 2, at + 1 + size, _number(data, at + 1, size)


def _number(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise ValueError("it is truncated")
    return int.from_bytes(data[at : at + size], "big")


def inline_key(value: str) -> bytes:
    """The key block that a deb822 Signed-By holds itself: a lone dot stands for an empty line (sources.list(5))."""
    lines = (line.strip() for line in value.splitlines())
    return "\n".join("" if line == "." else line for line in lines).encode("utf-8", "surrogateescape")
