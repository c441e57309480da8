"""How apply speaks to a host: one of the scripts in shell/, with its arguments, through the one seam."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence

from gpunode import resources
from gpunode.advice import named
from gpunode.apply.reasons import error_summary
from gpunode.errors import HostLocked, StepFailed, TransportError
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.transport.base import Completed, StillRunning, Transport
from gpunode.values import dataclass

SHORT_S = 60.0  # for scripts that only touch files


_SHARED = ("as_user", "common")  # what every script here may call


def script_text(script: str, *arguments: str, script_id: str = "") -> str:
    """What runs `script` ("files/put") with these arguments."""
    parts = (resources.script(name) for name in (*_SHARED, script))
    return f"script_id={script_id}\nset -- {shell_line(arguments)}\n{''.join(parts)}"


def in_turn(first: Sequence[str], reply: str, then: Sequence[str]) -> str:
    """What runs two scripts, each with its arguments: `then` only where all that `first` replied is `reply`.

    The second answer follows the first one's line. In a function: the shells of old do not find the end of a `case` in
    `$(...)`.
    """
    parts = (
        *map(resources.script, _SHARED),
        f"gpunode_first() (\nset -- {shell_line(first[1:])}\n{resources.script(first[0])})\n",
        'gpunode_reply=$(gpunode_first) || exit\nprintf "%s\\n" "$gpunode_reply"\n',
        f'[ "$gpunode_reply" = {shell_line((reply,))} ] || exit 0\n',
        f"set -- {shell_line(then[1:])}\n{resources.script(then[0])}",
    )
    return "".join(parts)


@dataclass(frozen=True)
class Host:
    """One host, and the lock's token that says we may write to it ("" before the lock is taken)."""

    transport: Transport
    token: str = ""

    def run(
        self, script: str, *arguments: str, stdin: bytes = b"", timeout_s: float = SHORT_S, script_id: str = ""
    ) -> Completed:
        """Run `script` ("files/put") there. Raises HostLocked when the lock is another gpunode's by now, or gone.

        `script_id`: the name by which `run_or_end` ends it.
        """
        text = script_text(script, *arguments, script_id=script_id)
        return self.ours(self.transport.run(text, stdin=stdin, timeout_s=timeout_s))

    def ours(self, done: Completed) -> Completed:
        """`done`. Raises HostLocked where that script found the lock to be another gpunode's, or gone."""
        if done.stdout.startswith((b"lock-lost", b"lock-gone")):
            raise self._lost(gone=done.stdout.startswith(b"lock-gone"))
        return done

    def _lost(self, *, gone: bool) -> HostLocked:
        if gone:
            return HostLocked(
                f"{self.transport.target}: this run's lock is gone: the host was rebooted, or its /run was emptied",
                evidence="there is no /run/gpunode/lock",
                remedy=Remedy(RepairAction.WAIT, "run ", AGAIN, " again: it goes on with what is there"),
            )
        return HostLocked(
            f"{self.transport.target}: another gpunode took over this host's lock",
            evidence="the lock in /run/gpunode no longer holds this run's token",
            remedy=Remedy(RepairAction.WAIT, "let the other run end, then run ", AGAIN, " again"),
        )

    def run_or_end(self, script: str, *arguments: str, what: str, stdin: bytes = b"", timeout_s: float) -> Completed:
        """As `run`, of a script that may be killed at any moment; one that outlives its limit is, with its session.

        Raises Overdue when nothing of it runs any more, StillRunning when it does, or nobody can tell.
        """
        script_id = secrets.token_hex(8)
        try:
            return self.run(script, *arguments, stdin=stdin, timeout_s=timeout_s, script_id=script_id)
        except StillRunning as late:
            problem = f"{script} did not {what} within {timeout_s:.0f} s"
            word, rest = self._end(script_id)
            if word == "ended":
                raise Overdue(f"{problem}, and was ended", evidence=late.evidence, remedy=_OVERDUE) from late
            where = f" (process {rest})" if word == "running" else f", as far as is known: {rest}"
            raise StillRunning(
                f"{self.transport.target}: {problem}, and still runs{where}; nothing is rolled back while it runs",
                evidence=late.evidence,
                remedy=Remedy(
                    RepairAction.WAIT,
                    "let it come to its end (ps -eo pid,stat,comm), then run ",
                    AGAIN,
                    " again: it resumes the interrupted step",
                ),
            ) from late

    def _end(self, script_id: str) -> tuple[str, str]:
        try:
            return parse_reply(self.run("files/end", self.token, script_id))
        except (TransportError, StepFailed) as error:
            return "unknown", error.problem


class Overdue(StepFailed):
    """A script outlived its limit and was ended. The host's journal and its files show how far it came."""


_OVERDUE = Remedy(
    RepairAction.REPLACE,
    "look for a disk or a file system that hangs (state D in ps -eo pid,stat,comm), then run ",
    AGAIN,
    " again",
)


def shell_line(argv: Sequence[str]) -> str:
    """The one place where words become a shell line."""
    return shlex.join(argv)


def parse_reply(done: Completed) -> tuple[str, str]:
    """(first word, the rest) of a script's reply. Raises StepFailed when it is `failed`, or when there is none."""
    answer = done.stdout.decode("utf-8", "surrogateescape")
    word, _, rest = answer.partition("\n")[0].partition(" ")
    if word == "failed":
        raise StepFailed(rest, evidence=_advice_evidence(rest), remedy=_advice(rest))
    if not word:
        raise StepFailed(
            "a script of gpunode ended without a reply",
            evidence=f"exit code {done.code}; {error_summary(done.stderr.decode('utf-8', 'replace')) or 'no output'}",
            remedy=Remedy(RepairAction.WAIT, "run ", AGAIN, " again; it continues from what is there"),
        )
    return word, rest


# The kernel's messages (strerror) for what the user can fix.
_READ_ONLY = "Read-only file system"
_ADVICE = {
    "No space left": "free some space on that file system, ",
    "Disk quota": "raise the quota on that file system, ",
    _READ_ONLY: "mount it read-write (mount -o remount,rw), ",
    "Operation not permitted": "lsattr -d of the file and of its directory shows i (immutable) or a (append only); "
    "chattr -i (or -a) takes it off, ",
    "which is missing": "let its owner remove the link, or lead it to a file that is there; ",
}
_DENIED = "Permission denied"


def _advice(text: str) -> Remedy:
    first = advice_on(text)
    if not first and _DENIED in text:
        return Remedy(RepairAction.NONE, "run gpunode as root, or with sudo on the host")
    return Remedy(RepairAction.CONFIGURE, f"{first or 'fix that, '}then run ", AGAIN, " again")


def advice_on(text: str) -> str:
    """What to do about the kernel's message in `text`, ending in a comma or semicolon; "" where there is none."""
    before, found, _ = text.partition(f": {_READ_ONLY}")
    paths = re.findall(r"(?<![\w.])\.?(/[^\s':]+)", before[-300:])  # dpkg names './etc/x' as well as '/etc/x'
    if found and paths:
        path = named(paths[-1])
        return f"mount the file system of {path} read-write (findmnt -T {path} shows it; mount -o remount,rw), "
    return next((advice for words, advice in _ADVICE.items() if words in text), "")


def _advice_evidence(text: str) -> str:
    known = any(words in text for words in (*_ADVICE, _DENIED))
    return "the file is as it was; nothing half-written remains" if known else ""
