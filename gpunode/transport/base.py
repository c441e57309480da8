"""The one seam to the outside world: run a shell script on a host, get back what it printed."""

from __future__ import annotations

from typing import Protocol

from gpunode.errors import TransportError
from gpunode.values import dataclass


@dataclass(frozen=True)
class Way:
    """How one script came to its host over SSH, and when its answer was there. It holds no secret."""

    user: str  # who logged in
    host_key: str  # that the host showed: "ssh-ed25519 SHA256:..."
    known_in: str  # where that key stands: "/root/.ssh/known_hosts:12"
    becomes: bool  # sudo or doas was asked to make it root
    may_ask: bool  # sudo could ask for a password: one was at hand
    sent_at: float  # by this machine's clock, in seconds since 1970
    answered_at: float  # the same, and what a clock that is set meanwhile does not move


@dataclass(frozen=True)
class Completed:
    """How one script ended. Output is bytes: a host's text is decoded where it is understood."""

    code: int  # the script's own exit status
    stdout: bytes
    stderr: bytes
    seconds: float
    way: Way | None = None  # None: it is this machine, or a recording


class NotReached(TransportError):
    """The host did not answer, did not let us in or become root, or the connection ended."""

    check = "fleet.ssh-sudo"


class PasswordRefused(NotReached):
    """sudo, or its PAM, did not take the password that it was given, or others' did not, and it was not given to this
    one; each further try may lock the account.
    """


class HostKeyRefused(TransportError):
    """The host showed a key that is not known, has changed or is revoked; nothing was sent to it."""

    check = "fleet.hostkey"


# What another try does not mend, and may make worse. A refused login is none of them: a host that goes down or comes up
# refuses users other than root for a while (pam_nologin).
FINAL = (PasswordRefused, HostKeyRefused)


class StillRunning(TransportError):
    """A script had not ended within its limit. What it had printed by then is no result, and is not handed on."""


class Question(str):
    """A script that only reads, so that it may be sent twice where nobody knows whether it arrived."""

    __slots__ = ()


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
        """Let go of the connection, for good: nothing is run afterwards. Safe to call twice, and by another thread."""
        ...
