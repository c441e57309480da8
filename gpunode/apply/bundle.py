"""A bundle's file sent to a host, piece by piece: what arrived before the connection broke is not sent again."""

from __future__ import annotations

import shlex
from pathlib import Path

from gpunode import resources
from gpunode.apply.script import parse_reply
from gpunode.errors import StepFailed
from gpunode.model.bundle import HOME, Bundle
from gpunode.transport.base import Transport

PIECE_BYTES = 16 << 20  # held here and on the way; a host on a slow line takes it in minutes
_PIECE_S = 1800.0
_UNMOVED = 3  # answers without a step forward after which it is given up


def send_bundle(transport: Transport, bundle: Bundle) -> int:
    """Bring the file to the host, where a step of the plan unpacks it. Answers how many bytes were sent.

    Raises StepFailed where the host does not take it.
    """
    sent, unmoved, has = 0, 0, _receive(transport, bundle, "-")
    with Path(bundle.path).open("rb") as file:
        while has is not None and has < bundle.size_bytes:
            file.seek(has)
            piece = file.read(PIECE_BYTES)
            now = _receive(transport, bundle, str(has), piece)
            sent += len(piece)
            unmoved = unmoved + 1 if now == has else 0
            if unmoved >= _UNMOVED or not piece:
                raise StepFailed(
                    f"{transport.target} does not take the bundle", evidence=f"{has} of {bundle.size_bytes} bytes"
                )
            has = now
    return sent


def _receive(transport: Transport, bundle: Bundle, offset: str, piece: bytes = b"") -> int | None:
    """How many bytes the host has; None where it has the bundle unpacked."""
    words = shlex.join((HOME, bundle.sha256, offset))
    script = f"set -- {words}\n{resources.script('bundle/receive')}"
    word, rest = parse_reply(transport.run(script, stdin=piece, timeout_s=_PIECE_S))
    if word == "here":
        return None
    if word != "has" or not rest.isdigit():
        raise StepFailed(f"{transport.target} does not take the bundle", evidence=f"it answers {word[:40]} {rest[:80]}")
    return int(rest)
