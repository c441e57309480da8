"""Whether an engine needs more than a reload, and who restarts it: the user, where containers would stop."""

from __future__ import annotations

from gpunode.advice import named
from gpunode.engines.base import Rewrite
from gpunode.engines.registry import engine
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import Spec
from gpunode.planner.engines import daemon
from gpunode.planner.engines.taken_down import lost_with, when_it_may, why_lost
from gpunode.values import dataclass


@dataclass(frozen=True)
class Restart:
    """What only a restart of a running engine brings, where anything does."""

    reasons: tuple[str, ...] = ()  # sentences; (): a reload will do
    missed: bool = False  # one of the reasons is no setting: Engine.start_misses
    lost: str = ""  # the containers that it stops; "": none
    by_hand: str = ""  # the manual step, where gpunode does not restart it; "" with reasons: the plan does
    held: bool = False  # without it the running engine takes nothing of the new file, and the user is to restart it

    @property
    def planned(self) -> bool:
        return bool(self.reasons) and not self.by_hand


def restart_of(
    host: HostFacts, spec: Spec, facts: RuntimeFacts, rewrite: Rewrite, *, coming: bool, right: bool
) -> Restart:
    """`coming`: this plan installs the toolkit. `right`: file and running daemon are as wanted, but for CDI."""
    if not daemon.runs(host, facts):
        return Restart()
    runtime = engine(facts.name)
    missed = runtime.start_misses(host, facts, coming=coming)
    # The file is right and the running daemon still is not, or a reload does not take what is to be written.
    late = rewrite.needs_restart or (not rewrite.changed and runtime.late(facts, spec.runtime))
    along = lost_with(host, facts) if late or not right else ""
    reasons = [missed, f"{facts.name}'s CDI support is read at start, so it needs a restart to be live" if late else ""]
    reasons = [reason for reason in (*reasons, why_lost(host, facts) if along else "") if reason]
    if not reasons:
        return Restart()
    lost = along or runtime.lost_by_restart(host, facts)
    by_hand = _by_hand(host, spec, facts, "; ".join(reasons), lost)
    return Restart(tuple(reasons), bool(missed), lost, by_hand, held=bool(along and by_hand))


def _by_hand(host: HostFacts, spec: Spec, facts: RuntimeFacts, why: str, lost: str) -> str:
    """A user's own one is that user's to restart."""
    if facts.user:
        unit = engine(facts.name).users_unit
        stops = engine(facts.name).restart_keeps
        return f"{why}. As {named(facts.user)}: systemctl --user restart {unit}   ({stops})"
    if not daemon.reachable(host, facts, restart=True):
        return f"{why}. {daemon.by_hand(host, facts)}"
    if not lost or spec.allow_container_restart:
        return ""
    return f"{when_it_may(host, facts, why, lost)}, or gpunode setup again with --allow-container-restart"
