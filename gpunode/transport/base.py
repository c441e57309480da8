"""The one seam to the outside world: run a shell script on a host, get back what it printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpunode.errors import TransportError


@dataclass(frozen=True)
class Completed:
    """How one script ended. Output is bytes: a host's text is decoded where it is understood."""

    code: int  # the script's own exit status
    stdout: bytes
    stderr: bytes
    seconds: float


class StillRunning(TransportError):
    """A script had not ended within its limit. What it had printed by then is no result, and is not handed on."""


class Transport(Protocol):
    """A way to reach one host.

    There is no get or put: a file is written by a script that reads its text from stdin, so ownership, sudo and
    atomicity are the same locally and remotely. `become` (sudo), keepalive and host keys belong to the transport.
    """

    target: str  # how the user named the host: "localhost", "root@gpu07:22"

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """Run `script` with POSIX sh as root where possible, feeding `stdin` to it.

        `script` may be long and holds no secret. There is a result only when the answer came whole, up to the mark
        of its end (transport/answer.py); what a child that was left behind prints later is not part of it. Raises
        TransportError when the host cannot be reached, the login is refused, the connection or the script ends before
        that, or more came than the limit of an answer; StillRunning when `timeout_s` is over. A remote script is then
        abandoned, not killed; a local one is ended with all that belongs to its session.
        """
        ...

    def reconnect(self) -> None:
        """Forget the connection; the next run dials again (after a reboot). Does nothing where there is none."""
        ...

    def close(self) -> None:
        """Let go of the connection. Safe to call twice."""
        ...
