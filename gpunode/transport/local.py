"""This machine, through the same wrapper and marks as a remote one (transport/answer.py)."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from contextlib import ExitStack, nullcontext, suppress
from typing import IO, TYPE_CHECKING, Literal

from gpunode.errors import TransportError
from gpunode.remedy import Remedy, RepairAction
from gpunode.transport.ahead import Ahead, all_taken, environment, memory_file, taken
from gpunode.transport.answer import STDERR_GRACE_S, Answer, result
from gpunode.transport.base import Completed
from gpunode.transport.feed import StdinScript, Writer
from gpunode.transport.refusals import not_started
from gpunode.transport.secret import Secret
from gpunode.transport.shell import Delivery, as_root, deliver
from gpunode.transport.sudo_password import SudoPassword

if TYPE_CHECKING:
    import subprocess

    Process = subprocess.Popen[bytes] | Ahead

_SUDO_ANSWERS_S = 30.0
_ENDS_S = 5.0  # a script that is asked to end may take so long to clean up behind itself
_POLL_MS = 100
_BUSY_MS = 5  # while bytes wait for the script to read
_PIECE_BYTES = 65536


def end_ahead() -> None:
    """Nothing remains of a script that was started ahead and that nobody asked for."""
    for process in all_taken():
        _end(process, Answer())
        process.close()


class Local:
    """Runs scripts here: as root where that is possible without a question, else unprivileged (the facts record it).

    With a password each script is given it: sudo's memory of it does not reach from one session into the next.
    """

    def __init__(self, *, password: Secret | None = None, become: Literal["auto", "always", "never"] = "auto") -> None:
        self.target = "localhost"
        self._password = password
        self._become = become == "always" or (become == "auto" and os.geteuid() != 0)
        self._demanded = become == "always"
        self._asked = self._demanded or password is not None

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        """See Transport.run. Raises TransportError when there is no sh or sudo refuses the password."""
        self._ask_sudo_once()
        begin = time.monotonic()
        answer = Answer()
        delivery = deliver(script, stdin, become=self._become, password=self._password is not None)
        code = _execute(delivery, answer, timeout_s, self._password)
        seconds = time.monotonic() - begin
        return result(self.target, answer, code, seconds, late=code is None, not_begun=self._not_started)

    def reconnect(self) -> None:
        """There is no connection."""

    def close(self) -> None:
        """There is no connection."""

    def _ask_sudo_once(self) -> None:
        """Whether sudo, or doas, makes us root without a question."""
        if self._become and not self._asked:
            self._become = _execute(Delivery((*as_root(), "true"), b""), Answer(), _SUDO_ANSWERS_S) == 0
        self._asked = True

    def _not_started(self, code: int, stdout: bytes | bytearray, stderr: bytes | bytearray) -> TransportError:
        error = not_started(self.target, code, stdout, stderr)
        if not self._demanded:
            return error
        why = error.problem.removeprefix(f"{self.target}: ")
        return TransportError(
            f"{self.target}: root is needed here: {why}", evidence=error.evidence, remedy=error.remedy
        )


def _execute(delivery: Delivery, answer: Answer, timeout_s: float, password: Secret | None = None) -> int | None:
    """Fill `answer`. Exit status: -1 for a signal, 127 when there is no such program, None when nobody waited for it.

    Whoever has not ended by then, or prints without end, is ended here, with all of its session.
    """
    with ExitStack() as stack:
        try:
            process: Process = taken(delivery) or _started(delivery)
        except FileNotFoundError:
            answer.err(f"{delivery.argv[0]}: not found".encode())
            return 127
        except OSError as error:
            raise _unstarted(delivery.argv[0], error) from error
        assert process.stdout is not None
        assert process.stderr is not None
        stack.enter_context(process.stdout)
        stack.enter_context(process.stderr)
        writer = None
        if process.stdin is not None:
            stack.callback(process.stdin.close)
            alone = SudoPassword(password).at_host() if password else None
            writer = Writer(_Pipe(process.stdin), StdinScript(delivery, alone))
        return _listen(process, process.stdout.fileno(), process.stderr.fileno(), answer, timeout_s, writer)


def _started(delivery: Delivery) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C at the terminal stops gpunode between steps, not the step. Raises OSError."""
    import subprocess  # a look that was started ahead needs none of it

    with nullcontext(subprocess.PIPE) if delivery.asks else memory_file(delivery.payload) as source:
        return subprocess.Popen(
            delivery.argv,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment(),
        )


def _unstarted(program: str, error: OSError) -> TransportError:
    """EAGAIN and ENOMEM pass; a file that may not be executed stays so."""
    remedy = Remedy(RepairAction.WAIT, "free memory or processes, then run it again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.ENOEXEC):
        remedy = Remedy(
            RepairAction.CONFIGURE,
            f"let this user execute it: the mode of {program} and of its directories, a file system without noexec",
        )
    return TransportError(f"localhost: cannot start {program}", evidence=str(error), remedy=remedy)


class _Pipe:
    """A child's stdin that takes what it can, now. See Sink."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        os.set_blocking(stream.fileno(), False)

    def send(self, s: bytes) -> int:
        try:
            return os.write(self._stream.fileno(), s)
        except BlockingIOError as full:
            raise TimeoutError from full

    def shutdown_write(self) -> None:
        self._stream.close()


def _listen(
    process: Process, out: int, err: int, answer: Answer, timeout_s: float, writer: Writer | None
) -> int | None:
    deadline = time.monotonic() + timeout_s
    takers = {out: answer.out, err: answer.err}
    poller = select.poll()
    for descriptor in takers:
        poller.register(descriptor, select.POLLIN)
    try:
        while not answer.flooded and not (answer.complete and answer.stderr.ended):
            code = process.poll()  # asked before reading: all that it printed is then in the pipes
            busy = code is None and writer is not None and _feed(process, writer, answer)
            more = False
            for descriptor, _ in poller.poll(0 if code is not None else _BUSY_MS if busy else _POLL_MS):
                piece = os.read(descriptor, _PIECE_BYTES)
                takers[descriptor](piece)
                more |= bool(piece)
                if not piece:
                    poller.unregister(descriptor)
            if code is not None and not more:
                return max(-1, code)
            if answer.complete:  # only stderr is still waited for
                deadline = min(deadline, time.monotonic() + STDERR_GRACE_S)
            if time.monotonic() > deadline:
                return None
        return None
    finally:
        _end(process, answer)


def _feed(process: Process, writer: Writer, answer: Answer) -> bool:
    """True while bytes wait to be read. A sudo that asks again is killed, which its user may as long as it asks."""
    busy = writer.push(answer.began, answer.stderr.noise)
    if writer.refused:
        # Not ours to kill, or gone already: then its input ends, and it counts that as it likes.
        with suppress(PermissionError, ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        writer.close()
    return busy


def _end(process: Process, answer: Answer) -> None:
    """Wait for the script that told its end; ask any other to end, and make it: nothing of its session remains.

    What a script with an answer left running is not touched, as on a remote host.
    """
    if answer.complete and _ended_within(process, _ENDS_S):
        return
    for sign, limit_s in ((signal.SIGTERM, _ENDS_S), (signal.SIGKILL, _ENDS_S)):
        for pid in _session(process.pid):
            with suppress(ProcessLookupError, PermissionError):  # gone meanwhile; or sudo's, which ends by itself
                os.kill(pid, sign)
        end = time.monotonic() + limit_s
        while _session(process.pid) and time.monotonic() < end:
            process.poll()
            time.sleep(0.02)
        if process.poll() is not None and not _session(process.pid):
            return


def _ended_within(process: Process, limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    pause_s = 0.0005
    while process.poll() is None:
        if time.monotonic() > end:
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)
    return True


def _session(leader: int) -> list[int]:
    """Everything that still runs in the session of `leader`; a daemon has one of its own. Ends are not waited for."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(ValueError, ProcessLookupError, PermissionError):
            if os.getsid(int(name)) == leader:
                found.append(int(name))
    return found
