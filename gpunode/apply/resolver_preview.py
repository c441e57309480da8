"""What the host's own resolver would do for a plan, before anything is changed: shown with the plan, not relied on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpunode.apply.script import shell_line
from gpunode.model.plan import Answer, Plan, Run, Step
from gpunode.transport.base import StillRunning, Transport


def with_answers(plan: Plan, transport: Transport) -> Plan:
    """`plan` with the resolver's answer to each step that it can be asked about from here.

    Not where the plan changes repositories: until then the resolver would answer about other packages. A resolver
    that fails reports it in its step, and setup asks it again as that step's first act.
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
        if done.code == 0:
            yield Answer(step.id, tuple(done.stdout.decode("utf-8", "replace").splitlines()))


def _question(step: Step) -> Run | None:
    """The step's read-only question to the resolver; None where something changes packages or files before it."""
    for action in step.actions:
        if not isinstance(action, Run) or action.packages or action.files:
            return None
        if action.read_only and action.record_output:
            return action
    return None
