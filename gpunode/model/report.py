"""What happened (setup) and what was checked (check), as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpunode.errors import ExitCode
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan
from gpunode.remedy import NO_REMEDY, Remedy


class StepStatus(str, Enum):
    DONE = "done"
    FAILED = "failed"  # and what it changed was rolled back
    ROLLBACK_FAILED = "rollback-failed"
    UNDONE = "undone"  # it was done for a step that failed, or was never reached, and was rolled back after it
    SKIPPED = "skipped"  # an earlier step failed, or the person stopped


@dataclass(frozen=True)
class CommandResult:
    command: str
    code: int
    output: str  # last lines of stdout and stderr
    seconds: float


@dataclass(frozen=True)
class StepResult:
    id: str
    status: StepStatus
    commands: tuple[CommandResult, ...] = ()
    seconds: float = 0.0
    error: str = ""  # the sentence; with the daemon's own message where there is one
    evidence: str = ""
    remedy: Remedy = NO_REMEDY


@dataclass(frozen=True)
class RunReport:
    """One setup on one host, over all its passes."""

    target: str
    steps: tuple[StepResult, ...] = ()
    plan: Plan | None = None  # the last pass's plan: what was left to do
    reboot: str | None = None  # why a reboot is still needed
    error: str = ""
    evidence: str = ""
    remedy: Remedy = NO_REMEDY
    code: ExitCode = ExitCode.DONE
    by_hand: tuple[str, ...] = ()  # manual steps that remain, as commands to run

    @property
    def changed(self) -> bool:
        return any(step.status is StepStatus.DONE for step in self.steps)


class Severity(str, Enum):
    ERROR = "error"  # the node does not work, or will not after the next reboot
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    summary: str
    evidence: str
    remedy: Remedy
    fix: str | None = None  # the part of setup that fixes it: "runtime", "driver"
    severity: Severity | None = None  # None: the check's own


@dataclass(frozen=True)
class NotApplicable:
    """A check that could not or need not give a verdict, with the reason. Never shown as a pass."""

    reason: str


CheckOutcome = Finding | NotApplicable | None  # None: it passed


@dataclass(frozen=True)
class CheckResult:
    id: str
    severity: Severity
    outcome: CheckOutcome


@dataclass(frozen=True)
class CheckReport:
    target: str
    results: Mapping[str, CheckResult] = field(default_factory=dict)
    facts: HostFacts | None = None

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return self._findings(Severity.ERROR)

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        return self._findings(Severity.WARNING)

    @property
    def passed(self) -> int:
        return sum(result.outcome is None for result in self.results.values())

    def _findings(self, severity: Severity) -> tuple[CheckResult, ...]:
        return tuple(
            r
            for r in self.results.values()
            if isinstance(r.outcome, Finding) and (r.outcome.severity or r.severity) is severity
        )


@dataclass(frozen=True)
class HostOutcome:
    """One host of a fleet: a report, or the reason there is none."""

    target: str
    code: ExitCode
    check: CheckReport | None = None
    run: RunReport | None = None
    plan: Plan | None = None
    facts: HostFacts | None = None
    problem: str = ""
    evidence: str = ""
    remedy: Remedy = NO_REMEDY


@dataclass(frozen=True)
class FleetReport:
    hosts: tuple[HostOutcome, ...] = ()
    seconds: float = 0.0


class EventKind(str, Enum):
    PHASE = "phase"  # text names what begins: "detect", "plan", "apply pass 1"
    STEP_BEGIN = "step-begin"
    STEP_END = "step-end"
    NOTE = "note"


@dataclass(frozen=True)
class Event:
    """Progress, passed on as it happens to whoever listens. Execute prints nothing itself."""

    kind: EventKind
    target: str
    text: str
    step: str = ""
    status: StepStatus | None = None
    seconds: float = 0.0
