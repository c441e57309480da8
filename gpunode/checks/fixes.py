"""Which findings `gpunode check --fix` mends, by which steps of setup, and why it leaves the others to a person.

A finding is safe where a row of MENDED names the setup that mends it, and the planner marks each step of it that is
needed as safe (model/plan.py). Nothing is mended in another way than by those steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from gpunode.errors import GpunodeError
from gpunode.model.fix import ByHand, Fix
from gpunode.model.plan import (
    CDI_READABLE_STEP,
    CDI_REFRESH_STEP,
    CDI_SPEC_STEP,
    CDI_STALE_STEP,
    CHAR_LINKS_STEP,
    LOAD_STEP,
    NOUVEAU_STEP,
    SERVICES_STEP,
    Plan,
    Step,
)
from gpunode.model.report import CheckReport, Finding
from gpunode.remedy import Command, RepairAction
from gpunode.values import dataclass

Planned = Callable[[tuple[str, ...]], Plan]  # the plan of setup with these options; raises GpunodeError


@dataclass(frozen=True)
class Mends:
    """The setup that mends what a check finds."""

    setup: tuple[str, ...]
    steps: tuple[str, ...] = ()  # (): those that the finding names
    told: bool = True  # only where the finding's own remedy begins with a setup: another first move is a person's
    later: bool = False  # it is right though it is in force after a reboot only


DRIVER, TOOLKIT, RUNTIME = (("--only", part) for part in ("driver", "toolkit", "runtime"))
CDI = (CDI_READABLE_STEP, CDI_REFRESH_STEP, CDI_STALE_STEP, CDI_SPEC_STEP)
KUBERNETES = ("--only", "kubernetes")
_BY_CDI, _BY_ENGINE = Mends((*TOOLKIT, "--cdi"), CDI), Mends(RUNTIME)
_PERSISTENCED = Mends(DRIVER, (SERVICES_STEP,), told=False)

MENDED: Mapping[str, Mends] = {
    "boot.initramfs": Mends(DRIVER, (NOUVEAU_STEP,), later=True),
    "boot.nouveau-blacklisted": Mends(DRIVER, later=True),
    "ctk.cdi-devices": Mends(TOOLKIT, CDI),
    "ctk.cdi-fresh": Mends(TOOLKIT, CDI),
    "ctk.cdi-present": _BY_CDI,
    "ctk.cdi-readable": Mends(TOOLKIT, CDI),
    "ctk.cdi-refresh-unit": Mends((*TOOLKIT, "--cdi"), (CDI_REFRESH_STEP,), told=False),
    "dev.char-symlinks": Mends(DRIVER, (CHAR_LINKS_STEP,), told=False),
    "drv.module-loaded": Mends(DRIVER, (LOAD_STEP,), told=False),
    "drv.uvm-loaded": Mends(DRIVER, (LOAD_STEP,), told=False),
    "k8s.dra-boot": Mends(KUBERNETES, later=True),
    "k8s.dra-needs": _BY_ENGINE,
    "os.held-packages": Mends(DRIVER, later=True),
    "os.unattended-upgrades": Mends(DRIVER, later=True),
    "pci.runtime-pm": _PERSISTENCED,
    "rt.config-drift": _BY_ENGINE,
    "rt.containerd-file": _BY_ENGINE,
    "rt.containerd-live": _BY_ENGINE,
    "rt.crio": _BY_ENGINE,
    "rt.docker-file": _BY_ENGINE,
    "rt.docker-gpus": _BY_ENGINE,
    "rt.docker-live": _BY_ENGINE,
    "rt.effective-default": _BY_ENGINE,
    "rt.k3s": _BY_ENGINE,
    "rt.podman": _BY_CDI,
    "rt.runtime-type": _BY_ENGINE,
    "svc.persistenced": _PERSISTENCED,
}  # fmt: skip

# Why the others are a person's, by the kind of their remedy.
LEFT: Mapping[RepairAction, ByHand] = {
    RepairAction.NONE: ByHand.DECISION,
    RepairAction.CONFIGURE: ByHand.DECISION,
    RepairAction.RESTART_SERVICE: ByHand.SERVICE,
    RepairAction.RELOAD_MODULE: ByHand.NO_STEP,
    RepairAction.RESET_GPU: ByHand.GPU_WORK,
    RepairAction.REBOOT: ByHand.REBOOT,
    RepairAction.POWER_CYCLE: ByHand.HARDWARE,
    RepairAction.REPLACE: ByHand.HARDWARE,
    RepairAction.UPGRADE: ByHand.PACKAGES,
    RepairAction.WAIT: ByHand.WAIT,
    RepairAction.SUPPORT: ByHand.LOG,
}
# Logs to read first, of what no hardware need be behind.
_READ = ("capacity", "dp-registered", "dp-socket", "kubelet-up", "node-ready", "operator-managed")
# Where a setting is more than a setting.
LEFT_BY_ID: Mapping[str, ByHand] = {
    **{f"k8s.{name}": ByHand.DECISION for name in _READ},
    "expect.mig": ByHand.GPU_WORK,
    "mig.layout-vs-wanted": ByHand.GPU_WORK,
    "rt.docker-gpus": ByHand.CONTAINERS,  # where a restart of dockerd would stop some
    "svc.fabricmanager-active": ByHand.GPU_WORK,
    "svc.fabric-state": ByHand.GPU_WORK,
    "svc.imex": ByHand.GPU_WORK,
}


def left(id: str, action: RepairAction) -> ByHand:
    """Why a person does what this check asks for."""
    return LEFT_BY_ID.get(id, LEFT[action])


def with_fixes(report: CheckReport, planned: Planned) -> CheckReport:
    """The report whose findings say what `check --fix` does about them."""

    @cache
    def answer(options: tuple[str, ...]) -> Plan | GpunodeError:
        try:
            return planned(options)
        except GpunodeError as error:
            return error

    found = report.findings
    fixes = {id: _fix(id, finding, answer) for id, finding in found.items()}
    last = {id: _after_its_cause(found, fixes, id) for id in found}
    changed = {id: replace(report.results[id], outcome=replace(one, fix=last[id])) for id, one in found.items()}
    return replace(report, results={**report.results, **changed})


def _fix(id: str, finding: Finding, answer: Callable[[tuple[str, ...]], Plan | GpunodeError]) -> Fix:
    if (finding.cause or "").startswith("setup."):
        return _by_hand(ByHand.REFUSED, f"setup refuses it: {finding.cause}")
    way, reason = MENDED.get(id), left(id, finding.remedy.action)
    if way is None or (way.told and not _begins_with_setup(finding)):
        return _by_hand(reason)
    if finding.decision:
        return _by_hand(ByHand.DECISION, finding.decision)
    plan = answer(way.setup)
    if isinstance(plan, GpunodeError):
        return _by_hand(ByHand.REFUSED, plan.problem)
    return _by_plan(way, way.steps or finding.steps, plan)


def _begins_with_setup(finding: Finding) -> bool:
    first = finding.remedy.parts[0] if finding.remedy else None
    return isinstance(first, Command) and first.verb == "setup"


def _by_plan(way: Mends, wanted: Sequence[str], plan: Plan) -> Fix:
    steps = [step for step in plan.steps if step.id in wanted]
    if not steps:
        return _by_hand(ByHand.NO_STEP)
    if before := _before(steps[0], plan):
        return _by_hand(ByHand.PACKAGES, f"{before.id} comes first: {before.title}")
    if waiting := next((step for step in steps if step.by_hand), None):
        return _by_hand(ByHand.CONTAINERS, waiting.by_hand)
    if unsafe := next((step for step in steps if not step.safe), None):
        return _by_hand(ByHand.PACKAGES if unsafe.installs else ByHand.SERVICE, f"{unsafe.id}: {unsafe.title}")
    if plan.reboot and not way.later and way.setup == DRIVER:
        return _by_hand(ByHand.REBOOT, plan.reboot)
    return Fix(True, setup=way.setup, steps=tuple(step.id for step in steps))


def _before(step: Step, plan: Plan) -> Step | None:
    """A step that is left to a person and after which setup plans anew: what follows it is not known yet."""
    earlier = plan.steps[: plan.steps.index(step)]
    return next((one for one in earlier if one.replan_after and not one.safe), None)


def _by_hand(reason: ByHand, why: str = "") -> Fix:
    return Fix(False, reason, why or reason.meaning)


def _after_its_cause(found: Mapping[str, Finding], fixes: Mapping[str, Fix], id: str) -> Fix:
    """A finding waits for what explains it, where a person mends that; a reboot is none, since it helps afterwards."""
    cause, seen = found[id].cause, {id}
    while fixes[id].safe and cause in found and cause not in seen:
        assert cause is not None
        if fixes[cause].by_hand not in (None, ByHand.REBOOT):
            return _by_hand(ByHand.CAUSE, f"{cause} explains it and comes first")
        seen.add(cause)
        cause = found[cause].cause
    return fixes[id]
