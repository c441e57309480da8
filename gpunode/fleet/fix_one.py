"""`check --fix` on one host: setup's plans, narrowed to the steps that the check named; the same executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpunode.catalog.load import Catalog, load_catalog
from gpunode.converge import Convergence, HostRun, quick_look
from gpunode.errors import GpunodeError
from gpunode.facts.collect import collect
from gpunode.fleet.apply_one import HostWork
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan, Step
from gpunode.model.report import HostOutcome, RunReport
from gpunode.model.spec import PARTS, RebootPolicy, Spec
from gpunode.planner.plan import make_plan
from gpunode.values import dataclass

VERB = "check --fix"


@dataclass(frozen=True)
class Part:
    """One setup, and the steps of its plan that are done."""

    spec: Spec
    steps: frozenset[str]


def harmless(spec: Spec) -> Spec:
    """What is wanted, without what may stop or reboot anything, whatever the spec allows a setup."""
    return replace(spec, reboot=RebootPolicy.NEVER, allow_container_restart=False, allow_gpu_in_use=False)


def fix_plan(host: HostFacts, parts: Sequence[Part], catalog: Catalog, done: frozenset[str] = frozenset()) -> Plan:
    """The plan of those steps alone, as far as they are safe on these facts. Raises what `make_plan` raises."""
    plans = [make_plan(host, part.spec, catalog, done) for part in parts]
    steps: dict[str, Step] = {}
    for part, plan in zip(parts, plans, strict=True):
        for step in plan.steps:
            if step.id in part.steps and step.safe and not step.by_hand:
                steps.setdefault(step.id, step)
    only = tuple(name for name in PARTS if any(name in part.spec.only for part in parts))
    return replace(
        plans[0],
        spec=replace(plans[0].spec, only=only),
        driver=None,
        steps=tuple(steps.values()),
        kept=(),
        reboot=None,
        console=None,
        replan_after=any(step.replan_after for step in steps.values()),
    )


def host_work(parts: Mapping[str, Sequence[Part]]) -> HostWork:
    """How one host's fix is carried out; `parts` by target."""

    def work(host_run: HostRun, plan: Plan) -> HostOutcome:
        target, catalog = host_run.transport.target, load_catalog()
        way = Convergence(
            host_run,
            observe=lambda: collect(host_run.transport),
            decide=lambda host, done: fix_plan(host, parts[target], catalog, done),
            policy=RebootPolicy.NEVER,
            saved=plan,
            quick=quick_look(host_run.transport),
        )
        try:
            report = retold(way.run())
        except GpunodeError as error:
            error.remedy = error.remedy.during(VERB)
            raise
        return HostOutcome(target, report.code, run=report)

    return work


def retold(report: RunReport) -> RunReport:
    """Its remedies go on with `check --fix`."""
    steps = tuple(replace(step, remedy=step.remedy.during(VERB)) for step in report.steps)
    return replace(report, remedy=report.remedy.during(VERB), steps=steps)
