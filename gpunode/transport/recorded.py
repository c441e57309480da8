"""A host that was recorded: it answers the probe with the saved stream, and nothing else."""

from __future__ import annotations

from gpunode.errors import GpunodeError
from gpunode.transport.base import Completed

# The first line of every probe stream, which the probe's own text therefore holds (facts/wire.py).
PROBE_MARK = "@gpunode-facts 1"


class Recorded:
    """`stream` is what the probe printed on the real host, whole, byte for byte."""

    def __init__(self, stream: bytes, target: str) -> None:
        self._stream = stream
        self.target = target

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """The recording for the probe; GpunodeError for every other script."""
        if PROBE_MARK in script:
            return Completed(0, self._stream, b"", 0.0)
        raise GpunodeError(
            f"{self.target} is a recorded host: a recording cannot be changed or asked anything new",
            evidence="it answers the probe, and only with what was saved",
            remedy="run this on the host itself, or over SSH with --ssh",
        )

    def reconnect(self) -> None:
        """There is no connection."""

    def close(self) -> None:
        """There is no connection."""
