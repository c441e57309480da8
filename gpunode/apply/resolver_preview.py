"""What the host's own resolver would do for a plan, before anything is changed: shown with the plan, not relied on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpunode.apply.script import shell_line
from gpunode.model.action import Run
from gpunode.model.plan import Answer, Plan, Step
from gpunode.regex import regex
from gpunode.transport.base import StillRunning, Transport

DOWNLOAD = regex(r"download ([0-9]{1,15})")
MIXED = "mixed "


def with_answers(plan: Plan, transport: Transport) -> Plan:
    """`plan` with the resolver's answer to each step that it can be asked about from here.

    Not where the plan changes repositories: until then the resolver would answer about other packages. A resolver
    that fails reports it in its step, and setup asks it again as that step's first act. An answer that setup would
    refuse (it has a remedy for that exit code) is shown as such.
    """
    if any(step.changes_repositories for step in plan.steps):
        return plan
    return replace(plan, answers=tuple(_asked(plan, transport)))


def _asked(plan: Plan, transport: Transport) -> Iterator[Answer]:
    for step in plan.steps:
        run = _question(step)
        if run is None:
            continue
        words = ("env", *(f"{name}={value}" for name, value in run.env), *run.argv)
        try:
            done = transport.run(f"exec {shell_line(words)}", stdin=run.stdin.encode(), timeout_s=run.timeout_s)
        except StillRunning:
            continue
        refusals = dict(run.remedies)
        if done.code == 0 or done.code in refusals:
            answer = _answer(step.id, done.stdout.decode("utf-8", "replace").splitlines())
            why = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            yield replace(answer, refused=f"{why}; {refusals[done.code]}" if done.code in refusals else "")


def _answer(step_id: str, lines: Sequence[str]) -> Answer:
    """simulate.sh's lines, of which one may be "download BYTES", and one_branch.sh's "mixed NAME VERSION"."""
    sizes = [int(size[1]) for line in lines if (size := DOWNLOAD.fullmatch(line))]
    mixed = tuple(line.removeprefix(MIXED) for line in lines if line.startswith(MIXED))
    changes = tuple(line for line in lines if not DOWNLOAD.fullmatch(line) and not line.startswith(MIXED))
    return Answer(step_id, changes, sizes[0] if sizes else None, mixed)


def _question(step: Step) -> Run | None:
    """The step's read-only question to the resolver; None where something changes packages or files before it."""
    for action in step.actions:
        if not isinstance(action, Run) or action.packages or action.files:
            return None
        if action.read_only and action.record_output:
            return action
    return None
