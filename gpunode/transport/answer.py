"""One script's answer as it arrives: where it begins, where it ends, and how much of it is kept.

    banner, noise of rc files            not the script's; dropped
    \\x1egpunode-begin TOKEN\\n            the script starts
    whatever it prints                   bytes of any kind, with or without a last newline
    \\x1egpunode-end TOKEN CODE\\n         the script's own exit status; only now there is a result

A pipe keeps its order, so both marks prove that all between them is there. The host draws TOKEN anew for every script
(transport/shell.py) and shows it to nobody but us: what a script prints, or quotes from a file, cannot end it early.
"""

from __future__ import annotations

from collections.abc import Callable

from gpunode.errors import TransportError
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction
from gpunode.transport.base import Completed, StillRunning

# A hundred times the largest probe of examples/hosts. A host may cost the controller 64 MB in all, and reading an
# answer takes up to eight times its size (facts/wire.py).
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
STDERR_KEPT_BYTES = 256 * 1024  # its end, where tools say why
NOISE_LIMIT_BYTES = 1024 * 1024  # what a login may print before the script begins
STDERR_LIMIT_BYTES = 64 * 1024 * 1024  # read and dropped; whoever prints more does so without end
STDERR_GRACE_S = 5.0  # once the answer is complete: how long its stderr may take to end as well

_BEGIN = regex(rb"\x1egpunode-begin ([0-9a-f-]{32,36})\n")
_BEGIN_BYTES = 64  # longer than any begin mark
_CODE = regex(rb"(\d{1,3})\n")


class Stream:
    """One of the two streams between its marks. Every byte is looked at once, however small the pieces."""

    def __init__(self) -> None:
        self.noise = bytearray()  # before the begin mark
        self.body = bytearray()
        self.code: int | None = None  # from the end mark; None: it has not come
        self.seen = 0  # bytes taken in
        self._end: bytes | None = None  # the end mark up to its exit status; None: not begun
        self._looked = 0

    @property
    def began(self) -> bool:
        return self._end is not None

    @property
    def ended(self) -> bool:
        return self.code is not None

    def take(self, piece: bytes) -> None:
        self.seen += len(piece)
        if self.ended:
            return  # a child that was left behind goes on talking
        if self._end is None:
            self.noise += piece
            found = _BEGIN.search(self.noise, max(0, len(self.noise) - len(piece) - _BEGIN_BYTES))
            if found is None:
                return
            self._end = b"\x1egpunode-end " + found[1] + b" "
            self.body = self.noise[found.end() :]
            del self.noise[found.start() :]
        else:
            self.body += piece
        self._find_end(self._end)

    def keep_last(self, limit_bytes: int) -> None:
        """Forget all but the last `limit_bytes` to twice as much."""
        for kept in (self.noise, self.body):
            if len(kept) > 2 * limit_bytes:
                self._looked = max(0, self._looked - (len(kept) - limit_bytes)) if kept is self.body else self._looked
                del kept[:-limit_bytes]

    def _find_end(self, mark: bytes) -> None:
        while (place := self.body.find(mark, self._looked)) >= 0:
            after = place + len(mark)
            if found := _CODE.match(self.body, after):
                self.code = int(found[1])
                del self.body[place:]
                return
            if len(self.body) - after < 4:
                self._looked = place  # its exit status is still on the way
                return
            self._looked = after
        self._looked = max(self._looked, len(self.body) - len(mark) + 1)


class Answer:
    """Both streams of one script. stdout decides; stderr is kept as far as it goes."""

    def __init__(self) -> None:
        self.stdout = Stream()
        self.stderr = Stream()

    def out(self, piece: bytes) -> None:
        self.stdout.take(piece)

    def err(self, piece: bytes) -> None:
        self.stderr.take(piece)
        self.stderr.keep_last(STDERR_KEPT_BYTES)

    @property
    def began(self) -> bool:
        return self.stdout.began

    @property
    def complete(self) -> bool:
        return self.stdout.ended

    @property
    def flooded(self) -> bool:
        """More came than a result can be: reading on would only feed whoever prints without end."""
        return (
            len(self.stdout.body) > ANSWER_LIMIT_BYTES
            or len(self.stdout.noise) > NOISE_LIMIT_BYTES
            or self.stderr.seen > STDERR_LIMIT_BYTES
        )


Fault = Callable[[int, bytes | bytearray, bytes | bytearray], TransportError]


def result(target: str, answer: Answer, code: int | None, seconds: float, *, late: bool, not_begun: Fault) -> Completed:
    """What the script answered. Without its end mark there is no result: TransportError says what came instead.

    `code` is how the process ended (-1: unknown, or a signal; None: it goes on), `late` that its time is over.
    `not_begun` makes the error for a script that never started from its exit status and both streams' noise.
    """
    out, err = answer.stdout, answer.stderr
    if out.code is not None and len(out.body) <= ANSWER_LIMIT_BYTES:
        return Completed(out.code, bytes(out.body), bytes(err.body), seconds)
    if answer.flooded:
        raise _flood(target, answer)
    if late:
        raise _late(target, answer, seconds)
    if not answer.began:
        raise not_begun(-1 if code is None else code, out.noise, err.noise)
    raise TransportError(
        f"{target}: the script ended before its answer was complete",
        evidence=f"{len(out.body)} bytes came without the mark of the end"
        + (f"; exit status {code}" if code is not None and code >= 0 else "; a signal killed it"),
        remedy=Remedy(RepairAction.WAIT, "look in the host's kernel log for the OOM killer, then run it again"),
    )


def _flood(target: str, answer: Answer) -> TransportError:
    if len(answer.stdout.body) > ANSWER_LIMIT_BYTES:
        what, evidence = (
            f"a script printed more than {ANSWER_LIMIT_BYTES >> 20} MiB",
            "no real host's answer is so long",
        )
    elif answer.began:
        what, evidence = f"a script's error output is longer than {STDERR_LIMIT_BYTES >> 20} MiB", "it has no end"
    else:
        what, evidence = "the login prints without end", "no script began"
    return TransportError(
        f"{target}: {what}",
        evidence=f"{evidence}; it was truncated, and nothing of it is used",
        remedy="look for an rc file or a command on the host that prints without end",
    )


def _late(target: str, answer: Answer, seconds: float) -> TransportError:
    if not answer.began:
        return TransportError(
            f"{target}: the login succeeded, but no script began within {seconds:.0f} s",
            evidence="neither the login shell nor sudo answered",
            remedy="log in with ssh and see what the shell's start-up files or sudo wait for",
        )
    return StillRunning(
        f"{target}: a script was still running after {seconds:.0f} s",
        evidence=f"{len(answer.stdout.body)} bytes came so far, and not the mark of the end",
        remedy=Remedy(
            RepairAction.WAIT, "look for processes in state D on the host (ps -eo pid,stat,comm), then try again"
        ),
    )
