"""How a check is declared: one short function, its id, and its documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, CheckResult, NotApplicable, Passed, Severity
from gpunode.model.rules import AUTO
from gpunode.model.spec import KubernetesMode, Spec
from gpunode.remedy import Remedy
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.catalog.load import Catalog


@dataclass(frozen=True)
class Context:
    """What a check may use in addition to the host: the spec (None: not given), the vendor's tables, today's date."""

    spec: Spec | None
    catalog: Catalog
    today: date | None = None  # by the clock of the machine that runs gpunode
    profile: str = AUTO  # what kind of node the user says that it is

    @property
    def mode(self) -> KubernetesMode | None:
        """What gives out the node's GPUs to pods: `kubernetes.mode` of the spec; None: nobody said."""
        return self.spec.kubernetes.mode if self.spec else None

    @property
    def handler(self) -> str:
        """The runtime that the engines should have: `handler` of the spec."""
        return (self.spec or Spec()).runtime.handler

    def profile_of(self, host: HostFacts) -> str:
        """What kind of node it is: "hgx", "workstation"."""
        from gpunode.checks.rules.profile import chosen_profile

        return chosen_profile(self.profile, "", host, self.catalog)[0].name


_MOST_REASONS = 64  # of the same needs; some have a file's or a host's words in them

CheckFunction = Callable[[HostFacts, Context], CheckOutcome | Passed]
Need = Callable[[HostFacts], str | None]  # why the check cannot or need not run on this host; None: it can
Why = Callable[[Need], str | None]


@dataclass(frozen=True)
class Witness:
    """A need that a pass rests on: of a time that it did not see, nobody can say that all was well."""

    need: Need
    blind: Need  # why finding nothing proves nothing on this host

    def __call__(self, host: HostFacts) -> str | None:
        return self.need(host)


@dataclass(frozen=True)
class CheckDoc:
    """One check for `gpunode check --list` and `--explain`."""

    id: str
    severity: Severity
    title: str  # what a pass proves, in a few words
    broken: str  # the docstring: one sentence that describes the broken host
    reads: str  # where the evidence comes from
    remedy: Remedy  # the usual next move; a finding's own remedy names the thing
    explains: tuple[str, ...] = ()  # the checks whose findings this one's may explain (causes.py)
    explained_by: tuple[str, ...] = ()
    foreign: str | None = None  # the file of a check that is the site's own


@dataclass(frozen=True)
class Check:
    doc: CheckDoc
    needs: tuple[Need, ...]
    function: CheckFunction
    mode: KubernetesMode | None = None  # it is about this way of giving GPUs to pods alone

    def judged(self, host: HostFacts, context: Context) -> CheckResult:
        """The verdict on a host that has what it needs."""
        outcome = self.function(host, context)
        if outcome is None or isinstance(outcome, Passed):
            blind = next((why for one in self._witnesses if (why := one.blind(host)) is not None), None)
            outcome = outcome if blind is None else NotApplicable(blind)
        return self._passes if outcome is None else ended(self.doc.id, self.doc.severity, outcome)

    @cached_property
    def _witnesses(self) -> tuple[Witness, ...]:
        return tuple(need for need in self.needs if isinstance(need, Witness))

    @cached_property
    def _passes(self) -> CheckResult:
        """The same for every host of a fleet that passes."""
        return CheckResult(self.doc.id, self.doc.severity, None)


class SameNeeds:
    """Checks that need the same: a host that lacks it has one reason for all, and a fleet has few reasons."""

    def __init__(self, checks: Sequence[Check]) -> None:
        """`checks`: alike in what they need and in their mode; one at least."""
        self._checks, self._needs, self._mode = checks, checks[0].needs, checks[0].mode
        self._lacking: dict[str, dict[str, CheckResult]] = {}

    def run(self, host: HostFacts, context: Context, why: Why) -> Mapping[str, CheckResult]:
        """The verdicts on this host by id; not applicable, with the reason, where a fact that they need is missing.

        `why`: answers what a need answers on this host, for those that share some of their needs.
        """
        reason = self._of_another_mode(context) if self._mode else None
        for need in self._needs:
            if reason is not None:
                break
            reason = why(need)
        if reason is not None:
            return self._lacking.get(reason) or self._not_here(reason)
        return {one.doc.id: one.judged(host, context) for one in self._checks}

    def _not_here(self, reason: str) -> dict[str, CheckResult]:
        if len(self._lacking) >= _MOST_REASONS:
            self._lacking.clear()
        outcome = NotApplicable(reason)
        held = {one.doc.id: CheckResult(one.doc.id, one.doc.severity, outcome) for one in self._checks}
        return self._lacking.setdefault(reason, held)

    def _of_another_mode(self, context: Context) -> str | None:
        if context.mode in (None, self._mode):
            return None
        giver = "NVIDIA's DRA driver" if context.mode == "dra" else "the device plugin"
        return f"kubernetes.mode of the spec is {context.mode}: {giver} gives out the GPUs"


def ended(id: str, severity: Severity, outcome: CheckOutcome | Passed) -> CheckResult:
    """How a check ended, as a report has it."""
    if isinstance(outcome, NotApplicable):
        return _without_verdict(id, severity, outcome)
    if isinstance(outcome, Passed):
        return CheckResult(id, severity, None, evidence=outcome.evidence)
    return CheckResult(id, severity, outcome)


@lru_cache(maxsize=1024)  # hosts of a fleet have most reasons in common
def _without_verdict(id: str, severity: Severity, outcome: NotApplicable) -> CheckResult:
    return CheckResult(id, severity, outcome)


REGISTRY: dict[str, Check] = {}


def check(
    id: str,
    severity: Severity,
    *,
    title: str,
    reads: str,
    remedy: Remedy,
    needs: Sequence[Need] = (),
    mode: KubernetesMode | None = None,
) -> Callable[[CheckFunction], CheckFunction]:
    """Register the decorated function as a check. Two checks of one id are a mistake in this directory: ValueError."""

    def register(function: CheckFunction) -> CheckFunction:
        if id in REGISTRY:
            raise ValueError(f"two checks are called {id}")
        broken = inspect.cleandoc(function.__doc__ or "")
        REGISTRY[id] = Check(CheckDoc(id, severity, title, broken, reads, remedy), tuple(needs), function, mode)
        return function

    return register
