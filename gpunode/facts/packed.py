"""The probe's answer as it came over the network: with gzip where the host has it (transport/packed.py)."""

from __future__ import annotations

import zlib

from gpunode.errors import TransportError
from gpunode.facts.wire import STREAM_LIMIT_BYTES, oversized

_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's word for a gzip header and trailer


def unpacked(answer: bytes) -> bytes:
    """The stream; the same bytes where it came plain.

    Raises TransportError for one that is cut or not gzip's after all, or larger than any host's answer: 4 MiB of
    gzip may hold 4 GiB of blanks, and no more than the limit is ever made of it.
    """
    if not answer.startswith(_MAGIC):
        return answer
    unpacker = zlib.decompressobj(_GZIP)
    try:
        stream = unpacker.decompress(answer, STREAM_LIMIT_BYTES + 1)
    except zlib.error as fault:
        raise _cut(answer, str(fault)) from fault
    if len(stream) > STREAM_LIMIT_BYTES:
        raise oversized(f"more than {STREAM_LIMIT_BYTES >> 20} MiB, compressed to {len(answer)} bytes")
    if not unpacker.eof:
        raise _cut(answer, "the end is missing")
    return stream


def _cut(answer: bytes, why: str) -> TransportError:
    return TransportError(
        "the probe's answer is truncated",
        evidence=f"{len(answer)} compressed bytes came: {why}",
        remedy="try again; if it happens again, check the connection and free space in /run and /tmp",
    )
