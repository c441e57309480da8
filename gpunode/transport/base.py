"""The one seam to the outside world: run a shell script on a host, get back what it printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """How one script ended. Output is bytes: a host's text is decoded where it is understood."""

    code: int  # exit status; 124 when timeout_s ran out
    stdout: bytes
    stderr: bytes
    seconds: float


class Transport(Protocol):
    """A way to reach one host.

    There is no get or put: a file is written by a script that reads its text from stdin, so ownership, sudo and
    atomicity are the same locally and remotely. `become` (sudo), keepalive and host keys belong to the transport.
    """

    target: str  # how the person named the host: "localhost", "root@gpu07:22"

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """Run `script` with POSIX sh as root where possible, feeding `stdin` to it.

        `script` may be long and holds no secret. Raises TransportError when the host cannot be reached, the login is
        refused, or the connection breaks before the script's exit status is known. A script that runs past
        `timeout_s` is abandoned (not killed by force) and answers code 124 with what it had printed.
        """
        ...

    def reconnect(self) -> None:
        """Forget the connection; the next run dials again (after a reboot). Does nothing where there is none."""
        ...

    def close(self) -> None:
        """Let go of the connection. Safe to call twice."""
        ...
