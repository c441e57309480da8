"""This machine. Output goes to memory files, not pipes: a daemon that a script left behind cannot keep a run open."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack

from gpunode.errors import TransportError
from gpunode.transport.base import Completed
from gpunode.transport.secret import Secret
from gpunode.transport.shell import Delivery, after_begin, began, deliver, not_started

TIMED_OUT = 124
_SUDO_ANSWERS_S = 30.0


class Local:
    """Runs scripts here: as root where that is possible without a question, else unprivileged (the facts say so)."""

    def __init__(self, *, password: Secret | None = None, become: bool = True) -> None:
        self.target = "localhost"
        self._password = password
        self._become = become and os.geteuid() != 0
        self._asked = False

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """See Transport.run. Raises TransportError when there is no sh or sudo refuses the password."""
        self._ask_sudo_once()
        begin = time.monotonic()
        code, stdout, stderr = _execute(deliver(script, stdin, become=self._become), timeout_s)
        if code != TIMED_OUT and not began(stdout):
            raise not_started(self.target, code, stdout, stderr)
        return Completed(code, after_begin(stdout), after_begin(stderr), time.monotonic() - begin)

    def reconnect(self) -> None:
        """There is no connection."""

    def close(self) -> None:
        """There is no connection."""

    def _ask_sudo_once(self) -> None:
        if not self._become or self._asked:
            return
        if self._password is not None:
            # The end of input follows the password, so sudo tries it exactly once.
            delivery = Delivery(("sudo", "-S", "-p", "", "-v"), self._password.reveal().encode() + b"\n")
            code, stdout, stderr = _execute(delivery, _SUDO_ANSWERS_S)
            if code != 0:
                raise not_started(self.target, code, stdout, stderr)
        else:
            self._become = _execute(Delivery(("sudo", "-n", "true"), b""), _SUDO_ANSWERS_S)[0] == 0
        self._asked = True


def _execute(delivery: Delivery, timeout_s: float) -> tuple[int, bytes, bytes]:
    """(exit status, stdout, stderr); 124 when time ran out, 127 when the program is not there."""
    with ExitStack() as stack:
        # Memory files: no limit as argv has, no disk that may be full, and seekable, so readers stop where they must.
        source, stdout, stderr = (
            stack.enter_context(os.fdopen(os.memfd_create(n), "w+b")) for n in ("in", "out", "err")
        )
        source.write(delivery.payload)
        source.seek(0)
        try:
            # A session of its own: Ctrl-C at the terminal stops gpunode between steps, not the step.
            process = subprocess.Popen(
                delivery.argv, stdin=source, stdout=stdout, stderr=stderr, start_new_session=True, env=_environment()
            )
        except FileNotFoundError:
            return 127, b"", f"{delivery.argv[0]}: not found".encode()
        except OSError as error:
            raise TransportError(
                f"localhost: cannot start {delivery.argv[0]}",
                evidence=str(error),
                remedy="free memory or processes, then run it again",
            ) from error
        code = _wait(process, timeout_s)
        return code, _content(stdout.fileno()), _content(stderr.fileno())


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        # Only the shell is asked to stop: what it started may be in the middle of writing.
        process.terminate()
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            # Still there after a second: left to itself, and reaped by the system when this program ends.
            process.returncode = TIMED_OUT
        return TIMED_OUT
    return 128 - code if code < 0 else code


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
