"""What is looked at under the lock before the first write: the plan's files, what killed runs left, all directories.

It may go along with taking the lock: one round trip, of two scripts that answer each for itself.
"""

from __future__ import annotations

from gpunode.apply.files import drift, drifted, sha256
from gpunode.apply.journal.entries import Written, open_steps, parse_journal
from gpunode.apply.script import Host, parse_reply
from gpunode.model.action import PutFile, RemoveFile
from gpunode.model.plan import Plan
from gpunode.transport.base import Completed
from gpunode.values import dataclass

SCRIPT = "files/check_drift"
Open = dict[tuple[str, str], tuple[Written, ...]]  # (run, step) -> the files it had announced


@dataclass(frozen=True)
class Surveyed:
    left: Open  # by a killed run
    directories: tuple[str, ...]  # of all runs: "runs/ID", "backup/ID"


def words(plan: Plan) -> tuple[str, ...]:
    """What SCRIPT is told behind the token."""
    return tuple(word for action in _first_actions(plan) for word in (action.path, action.owner))


def survey(host: Host, plan: Plan, answer: Completed | None = None) -> Surveyed:
    """Compare every file of the plan with its expected hash. `answer`: SCRIPT's, where it was asked already.

    Raises Drift; HostLocked where the lock is not ours any more.
    """
    done = host.run(SCRIPT, host.token, *words(plan)) if answer is None else host.ours(answer)
    parse_reply(done)
    head, _, journal = done.stdout.decode("utf-8", "surrogateescape").partition("\njournal\n")
    lines = head.splitlines()
    for action, now in zip(_first_actions(plan), lines[1:], strict=False):
        _hold(host.transport.target, action, now)
    return Surveyed(open_steps(parse_journal(journal)), tuple(lines[lines.index("directories") + 1 :]))


def _first_actions(plan: Plan) -> tuple[PutFile | RemoveFile, ...]:
    """Of each path; a later write of the same file expects the earlier one's text."""
    first: dict[str, PutFile | RemoveFile] = {}
    for step in plan.steps:
        for action in step.actions:
            if isinstance(action, (PutFile, RemoveFile)):
                first.setdefault(action.path, action)
    return tuple(first.values())


def _hold(target: str, action: PutFile | RemoveFile, now: str) -> None:
    match action:
        case PutFile():
            after, free = sha256(action.text.encode("utf-8", "surrogateescape")), action.any_before
        case RemoveFile():
            after, free = "absent", action.expect_sha256 is None
    if drifted(action.expect_sha256, now, after, free):
        raise drift(target, action.path, action.expect_sha256, now)
