"""A bundle's file sent to a host, piece by piece: what arrived before the connection broke is not sent again."""

from __future__ import annotations

import os
import shlex
import stat
from typing import IO

from gpunode import resources
from gpunode.apply.script import parse_reply
from gpunode.errors import StepFailed
from gpunode.foreign import whole_number
from gpunode.model.bundle import HOME, Bundle
from gpunode.transport.base import Transport

PIECE_BYTES = 16 << 20  # held here and on the way; a host on a slow line takes it in minutes
_PIECE_S = 1800.0
_UNMOVED = 3  # answers other than one whole piece further, after which it is given up: a host may answer anything


def send_bundle(transport: Transport, bundle: Bundle) -> int:
    """Bring the file to the host, where a step of the plan unpacks it. Answers how many bytes were sent.

    Raises StepFailed where the host does not take it.
    """
    sent, unmoved, has = 0, 0, _receive(transport, bundle, "-")
    with _opened(bundle) as file:
        while has is not None and has < bundle.size_bytes:
            file.seek(has)
            piece = file.read(PIECE_BYTES)
            if not piece:
                raise _gone(bundle, f"it ends at {has} of {bundle.size_bytes} bytes")
            now = _receive(transport, bundle, str(has), piece)
            sent += len(piece)
            unmoved += now is not None and now != has + len(piece)
            if unmoved >= _UNMOVED:
                raise StepFailed(
                    f"{transport.target} does not take the bundle",
                    evidence=f"it had {has} of {bundle.size_bytes} bytes, was sent {len(piece)}, and says it has {now}",
                    remedy="look whether another gpunode sends it to this host, and whether its disk is full",
                )
            has = now
    return sent


def _opened(bundle: Bundle) -> IO[bytes]:
    """The file that was read before the question, which may have been answered a day later. Raises StepFailed."""
    try:
        handle = os.open(bundle.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise _gone(bundle, str(error.strerror)) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _gone(bundle, "it is not a regular file any more")
    return os.fdopen(handle, "rb")


def _gone(bundle: Bundle, why: str) -> StepFailed:
    return StepFailed(
        f"the bundle {bundle.path} is not what was read before",
        evidence=why,
        remedy="leave it where it is until all hosts have it, and run setup again",
    )


def _receive(transport: Transport, bundle: Bundle, offset: str, piece: bytes = b"") -> int | None:
    """How many bytes the host has; None where it has the bundle unpacked."""
    words = shlex.join((HOME, bundle.sha256, offset))
    script = f"set -- {words}\n{resources.script('bundle/receive')}"
    word, rest = parse_reply(transport.run(script, stdin=piece, timeout_s=_PIECE_S))
    if word == "here":
        return None
    has = whole_number(rest)
    if word != "has" or has is None or has < 0:
        raise StepFailed(f"{transport.target} does not take the bundle", evidence=f"it answers {word[:40]} {rest[:80]}")
    return has
