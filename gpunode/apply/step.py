"""One step on one host: its actions, and the rollback when one of them fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import NoReturn

from gpunode.apply.commands.detached import run_detached, stdin_of
from gpunode.apply.commands.reboot import reboot_and_wait
from gpunode.apply.files import put_file, remove_file, restore
from gpunode.apply.journal.entries import Journal, Written, open_steps, parse_journal
from gpunode.apply.journal.past import read_journal
from gpunode.apply.lock import HostLock
from gpunode.apply.paths import slug
from gpunode.apply.reasons import error_summary, tail
from gpunode.apply.script import SHORT_S, Host, advice_on, parse_reply, shell_line
from gpunode.errors import Drift, StepFailed, TransportError
from gpunode.model.action import (
    Action,
    PutFile,
    Reboot,
    RemoveFile,
    Run,
)
from gpunode.model.plan import Step
from gpunode.model.report import CommandResult
from gpunode.remedy import AGAIN, Remedy, RepairAction
from gpunode.transport.base import StillRunning
from gpunode.values import dataclass

TIMED_OUT = 124  # what timeout(1) answers for a command that it had to end
AFTER_FILES = "after the files were restored"
GRACE_S = 15.0  # over the command's own limit, which the host enforces


@dataclass
class StepRun:
    """A step under way: what it wrote and ran so far."""

    host: Host
    journal: Journal
    step: Step
    on_output: Callable[[str], None]
    pause: Callable[[float], None]
    lock: HostLock | None = None
    earlier: tuple[Written, ...] = ()  # files that a killed run, or a killed script, left open in this same step
    written: list[Written] = field(default_factory=list)
    commands: list[CommandResult] = field(default_factory=list)
    ran: bool = False  # a command that changes something was begun, whether or not it ended

    def perform(self, action: Action) -> None:
        """Raises StepFailed or Drift when the action fails, TransportError when the host is unreachable.

        A script that outlives its limit while it writes a file is ended, and fails the step; where nobody can tell that
        it has ended, that is StillRunning, a TransportError: nothing may be restored while it runs.
        """
        match action:
            case Run():
                self._run(action)
            case PutFile():
                self._note(self._changed(lambda: put_file(self.host, self.journal, self.step.id, action)))
            case RemoveFile():
                self._note(self._changed(lambda: remove_file(self.host, self.journal, self.step.id, action)))
            case Reboot():
                reboot_and_wait(self.host, self.journal, action.wait_s, pause=self.pause)
                if self.lock:
                    self.lock.take()  # /run, and the lock in it, went with the reboot
            case _:
                assert_never(action)

    def roll_back(self) -> list[str]:
        """Files back to their bytes, newest first, then the step's undo; a sentence for each that failed."""
        changed = self.ran
        faults = []
        for written, own in [
            *((w, True) for w in reversed(self.written)),
            *((w, False) for w in reversed(self.earlier)),
        ]:
            try:
                word = restore(self.host, self.journal, self.step.id, written, own=own, tell=self.on_output)
                changed |= word == "restored"
            except (StepFailed, TransportError) as error:
                kept = f"its old bytes are in {written.backup}" if written.backup else "it was absent before"
                faults.append(f"{written.path} could not be restored ({error.problem}); {kept}")
        # With nothing changed there is nothing to undo: no daemon is restarted because a candidate was not valid.
        return faults if faults or not changed else self._undo()

    def _undo(self) -> list[str]:
        for action in self.step.undo:
            try:
                self.perform(action)
            except (StepFailed, Drift, TransportError) as error:
                return [f"{AFTER_FILES}: {error.problem}"]
        return []

    def _note(self, written: Written | None) -> None:
        if written:
            self.written.append(written)

    def _changed(self, change: Callable[[], Written | None]) -> Written | None:
        try:
            return change()
        except (StepFailed, Drift):
            # Maybe after the rename, or without a reply. What it was about to do is in the host's journal, as of a run
            # that was killed: what it did of that goes back, and what others wrote meanwhile stays.
            entries = parse_journal(read_journal(self.host.transport) or "")
            announced = open_steps(entries).get((self.journal.run_id, self.step.id), ())
            self.earlier += tuple(w for w in announced if w not in (*self.written, *self.earlier))
            raise

    def _run(self, run: Run) -> None:
        for wait_s in (*run.retry, None):
            result = self._once(run)
            self.commands.append(result)
            if result.code in run.ok_codes:
                if run.record_output:
                    self.journal.add("answer", step=self.step.id, description=result.command, text=result.output)
                return
            if wait_s is not None:
                self.pause(wait_s)
        raise _failure(run, result)

    def _once(self, run: Run) -> CommandResult:
        touched = {"packages": run.packages, "files": run.files}
        self.journal.add("command", step=self.step.id, argv=run.argv, **{k: v for k, v in touched.items() if v})
        return self._detached(run) if run.detach else self._attached(run)

    def _attached(self, run: Run) -> CommandResult:
        self._begun(run)
        limit = str(max(1, round(run.timeout_s)))
        try:
            done = self.host.run(
                "commands/run",
                self.host.token,
                self.journal.pending(),
                limit,
                *run.argv,
                stdin=stdin_of(run),
                timeout_s=run.timeout_s + GRACE_S,
            )
        except StillRunning:  # a host without `timeout`, or a command that no signal ends
            return CommandResult(name(run), TIMED_OUT, "it may still run", run.timeout_s + GRACE_S)
        parse_reply(done)  # anything but `ran` raises
        self.journal.delivered()
        output = (done.stdout.partition(b"\n")[2] + done.stderr).decode("utf-8", "replace")
        return CommandResult(name(run), done.code, tail(output), done.seconds)

    def _begun(self, run: Run) -> None:
        """From here on there may be something to undo; a full disk can keep a detached command from coming this far."""
        self.ran |= not run.read_only

    def _detached(self, run: Run) -> CommandResult:
        run_id = slug(f"{self.journal.run_id}-{self.step.id}-{self.journal.number()}")
        ended = run_detached(
            self.host,
            self.journal,
            run_id,
            run,
            on_output=self.on_output,
            pause=self.pause,
            begun=lambda: self._begun(run),
        )
        if ended.code is None:
            raise StepFailed(
                f"{name(run)} vanished without an exit code: {error_summary(ended.output) or 'no output'}",
                evidence=f"/var/lib/gpunode/runs/{run_id}/out holds what it printed",
                remedy=Remedy(
                    RepairAction.UPGRADE,
                    "look in the kernel log for the OOM killer, then run ",
                    AGAIN,
                    " again: it repairs packages",
                ),
            )
        return CommandResult(name(run), ended.code, tail(ended.output), ended.seconds)


def flush(host: Host, journal: Journal) -> None:
    """Bring the waiting journal lines to the host now."""
    if lines := journal.pending():
        parse_reply(host.run("commands/run", host.token, lines, "1", timeout_s=SHORT_S))
        journal.delivered()


def name(run: Run) -> str:
    """The command's name in messages."""
    return run.description or shell_line(run.argv)


def assert_never(value: NoReturn) -> NoReturn:
    """typing.assert_never, which Python 3.10 does not have: mypy proves that it is never reached."""
    raise AssertionError(f"not an action: {value!r}")


def _failure(run: Run, result: CommandResult) -> StepFailed:
    summary = error_summary(result.output)
    if result.code == TIMED_OUT:
        return StepFailed(
            f"{name(run)} did not end within {run.timeout_s:.0f} s" + (f": {summary}" if summary else ""),
            evidence=result.output,
            remedy=Remedy(
                RepairAction.WAIT, "run ", AGAIN, " again, or run the command manually to see where it hangs"
            ),
        )
    return StepFailed(
        f"{name(run)} ended with code {result.code}: {summary or 'no output'}",
        evidence=result.output,
        remedy=_remedy(run, result.code, summary),
    )


def _remedy(run: Run, code: int, summary: str) -> Remedy:
    if own := dict(run.remedies).get(code):
        return Remedy(RepairAction.UPGRADE, f"{own}; then run ", AGAIN, " again")
    if "is held by process" in summary:
        return Remedy(
            RepairAction.WAIT, "let the process that holds the lock come to its end, then run ", AGAIN, " again"
        )
    return Remedy(RepairAction.CONFIGURE, f"{advice_on(summary) or 'fix what it names, '}then run ", AGAIN, " again")
