"""What happened (setup) and what was checked (check), as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum

from gpunode.errors import ExitCode
from gpunode.model.entities import Entity
from gpunode.model.facts import HostFacts
from gpunode.model.fix import Fix
from gpunode.model.layers import depth
from gpunode.model.plan import Plan
from gpunode.remedy import NO_REMEDY, Remedy
from gpunode.values import dataclass


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
class Weighed:
    """A severity that somebody set; `Finding.severity` has it."""

    before: Severity  # what it is by itself
    by: str  # "the spec" | "profile hgx"
    reason: str = ""

    @property
    def lowered(self) -> bool:
        return self.before is Severity.ERROR


@dataclass(frozen=True)
class Acknowledged:
    """The spec accepts this finding until a day."""

    reason: str
    expires: str  # the last day on which it holds, "2026-12-31"
    ended: bool = False  # that day has passed: the finding counts again


@dataclass(frozen=True)
class ChosenProfile:
    """What kind of node the checks took it for."""

    name: str  # "hgx"
    title: str  # "HGX node"
    why: str  # "4 NVSwitches" | "the spec" | "--profile"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    summary: str
    evidence: str
    remedy: Remedy
    fix: Fix | None = None  # None: the planner was not asked
    severity: Severity | None = None  # None: the check's own
    steps: tuple[str, ...] = ()  # those of setup that mend it: ("docker.default",); (): any that its setup plans
    otherwise: Remedy = NO_REMEDY  # for a host on which setup has no such step
    entities: tuple[Entity, ...] = ()  # what it is about; (): the host as a whole
    cause: str | None = None  # the check whose finding explains this one; None: nothing does, it is a cause itself
    consequences: tuple[str, ...] = ()  # the checks whose findings this one explains, what is nearest first
    short: str = ""  # what it is called in the line under its cause
    decision: str = ""  # what a person decides before setup may mend it; "": nothing
    weighed: Weighed | None = None  # None: it is as severe as the check says
    acknowledged: Acknowledged | None = None

    @property
    def accepted(self) -> bool:
        """It counts for nothing: somebody accepted it, and that has not ended."""
        return self.acknowledged is not None and not self.acknowledged.ended


@dataclass(frozen=True)
class NotApplicable:
    """A check that could not or need not give a verdict, with the reason. Never shown as a pass."""

    reason: str
    left_out: bool = False  # the user or the profile does not want its verdict


@dataclass(frozen=True)
class Passed:
    """What a check answers that passed and can say what was seen; it becomes `CheckResult.evidence`."""

    evidence: str


CheckOutcome = Finding | NotApplicable | None  # None: it passed


@dataclass(frozen=True)
class CheckResult:
    id: str
    severity: Severity
    outcome: CheckOutcome
    foreign: str | None = None  # the file of a check that is the site's own; None: gpunode's
    # Of a pass, where the check says what it saw; what was measured anew is no other verdict.
    evidence: str = field(default="", compare=False)

    @property
    def found(self) -> Severity:
        """How bad it is here: the finding's own severity, where it has one."""
        own = self.outcome.severity if isinstance(self.outcome, Finding) else None
        return own or self.severity


@dataclass(frozen=True)
class HostTraits:
    """What a report says of the host itself."""

    hostname: str
    virtualization: str | None  # hypervisor vendor, "container", or None on bare metal


@dataclass(frozen=True)
class CheckReport:
    target: str
    results: Mapping[str, CheckResult] = field(default_factory=dict)
    facts: HostFacts | None = None  # None: they were not there, or are no longer held (alike.py)
    profile: ChosenProfile | None = None  # None: none was chosen
    idle: tuple[str, ...] = ()  # acknowledgements of the spec that match no finding here, each with why
    traits: HostTraits | None = None  # where the facts are no longer held
    local: bool = False  # of this machine; a recording may be called localhost as well

    @property
    def host(self) -> HostTraits | None:
        """None: nothing is known of it."""
        return HostTraits(self.facts.hostname, self.facts.virtualization) if self.facts else self.traits

    @property
    def own_name(self) -> str:
        """What this machine calls itself: all would be "localhost" in one table. "" for any other host, and unknown."""
        return self.host.hostname if self.local and self.host else ""

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return self._findings(Severity.ERROR)

    @property
    def warnings(self) -> tuple[CheckResult, ...]:
        return self._findings(Severity.WARNING)

    @property
    def passed(self) -> int:
        return sum(result.outcome is None for result in self.results.values())

    @property
    def not_applicable(self) -> int:
        found = (r.outcome for r in self.results.values() if isinstance(r.outcome, NotApplicable))
        return sum(not outcome.left_out for outcome in found)

    @property
    def left_out(self) -> int:
        found = (r.outcome for r in self.results.values() if isinstance(r.outcome, NotApplicable))
        return sum(outcome.left_out for outcome in found)

    @property
    def acknowledged(self) -> tuple[CheckResult, ...]:
        """The findings that somebody accepted: no failure, no warning, no cause."""
        return tuple(r for r in self.results.values() if isinstance(r.outcome, Finding) and r.outcome.accepted)

    @property
    def causes(self) -> tuple[CheckResult, ...]:
        """The findings that nothing explains: worst first (`weight`), then the lowest layer."""
        own = (r for r in self._counting if isinstance(r.outcome, Finding) and r.outcome.cause is None)
        return tuple(sorted(own, key=lambda r: (self.weight(r) is not Severity.ERROR, depth(r.id), r.id)))

    def weight(self, cause: CheckResult) -> Severity:
        """How bad a finding is with all that follows from it."""
        severities = {cause.found, *(result.found for result in self.consequences(cause))}
        return Severity.ERROR if Severity.ERROR in severities else Severity.WARNING

    def consequences(self, cause: CheckResult) -> tuple[CheckResult, ...]:
        """What a finding explains, what is nearest first."""
        found = cause.outcome
        return tuple(self.results[id] for id in found.consequences) if isinstance(found, Finding) else ()

    @property
    def findings(self) -> Mapping[str, Finding]:
        """Every finding that counts, by its check's id."""
        return {r.id: r.outcome for r in self._counting if isinstance(r.outcome, Finding)}

    def _findings(self, severity: Severity) -> tuple[CheckResult, ...]:
        return tuple(r for r in self._counting if r.found is severity)

    @property
    def _counting(self) -> tuple[CheckResult, ...]:
        """Gone through once: it is asked for five times a host. (A cached_property of 3.11 has one lock for all.)"""
        found: tuple[CheckResult, ...] | None = self.__dict__.get("_found")
        if found is None:
            among = self.results.values()
            found = tuple([r for r in among if isinstance(r.outcome, Finding) and not r.outcome.accepted])
            self.__dict__["_found"] = found
        return found


def wanting(report: CheckReport, options: tuple[str, ...]) -> CheckReport:
    """The report whose remedies are typed with `options` of setup and plan."""
    if not options:
        return report

    def typed(result: CheckResult) -> CheckResult:
        found = result.outcome
        if not isinstance(found, Finding):
            return result
        return replace(result, outcome=replace(found, remedy=found.remedy.wanting(options)))

    return replace(report, results={id: typed(result) for id, result in report.results.items()})


class Untouched(str, Enum):
    """Why a host of a fleet has not been changed, where that is no failure of its own."""

    SKIPPED = "skipped"  # its GPUs or pods are at work
    NOT_BEGUN = "not-begun"  # the run had stopped before it


@dataclass(frozen=True)
class HostOutcome:
    """One host of a fleet: a report, or the reason there is none."""

    target: str
    code: ExitCode
    check: CheckReport | None = None
    before: CheckReport | None = None  # the same before `check --fix`; `check` is what it is after it
    run: RunReport | None = None
    plan: Plan | None = None
    facts: HostFacts | None = None
    problem: str = ""
    evidence: str = ""
    remedy: Remedy = NO_REMEDY
    check_id: str = ""  # the check that the problem answers, "fleet.hostkey"; "": none
    untouched: Untouched | None = None  # None: it was worked on, or failed
    left_out: str = ""  # why --where left it out: nothing was done there, and nothing is wrong; "": it did not

    @property
    def gone(self) -> tuple[str, ...]:
        """The checks whose findings `check --fix` has mended; () where there was no check before or after it."""
        if self.before is None or self.check is None:
            return ()
        return tuple(id for id in self.before.findings if id not in self.check.findings)


@dataclass(frozen=True)
class FleetReport:
    hosts: tuple[HostOutcome, ...] = ()
    seconds: float = 0.0
    run: str = ""  # the id of its record; "": it changed nothing, and none is kept


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
