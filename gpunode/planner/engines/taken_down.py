"""The engines that go down with another one's daemon, since systemd stops a unit with the one that it needs.

docker-ce 18.09 to 20.10 shipped a docker.service with BindsTo=containerd.service, and others' may have Requires=. A
restart of containerd is then one of dockerd, which stops its containers unless live-restore keeps them.
"""

from __future__ import annotations

from gpunode.advice import listing, named
from gpunode.engines.registry import engine
from gpunode.model.action import Action
from gpunode.model.facts import HostFacts, RuntimeFacts


def taken_down(host: HostFacts, facts: RuntimeFacts) -> tuple[RuntimeFacts, ...]:
    """The engines that run and whose unit systemd restarts with this one's."""
    state = host.services.get(facts.unit)
    if state is None or facts.user or not facts.active:
        return ()
    return tuple(
        one for one in host.runtimes if one.active and not one.user and one.unit in set(state.dependents) - {facts.unit}
    )


def lost_with(host: HostFacts, facts: RuntimeFacts) -> str:
    """Their containers that a new file for this one would stop, as it takes one by a restart only; "": none."""
    if not engine(facts.name).only_restarts:
        return ""
    lost = (engine(one.name).lost_by_restart(host, one) for one in taken_down(host, facts))
    return " and ".join(text for text in lost if text)


def why_lost(host: HostFacts, facts: RuntimeFacts) -> str:
    """The sentence on it, with how it is known."""
    units = listing(named(one.unit) for one in taken_down(host, facts))
    return (
        f"{facts.name} takes a new file by a restart only, and systemd restarts {units} with {named(facts.unit)} "
        f"(Requires=, BindsTo= or PartOf=; systemctl show -p RequiredBy,BoundBy,ConsistsOf {named(facts.unit)})"
    )


def when_it_may(host: HostFacts, facts: RuntimeFacts, why: str, lost: str) -> str:
    """What a restart would stop, and the command for when it may."""
    name = named(facts.unit.removesuffix(".service"))
    command = f"systemctl restart {name}" if host.init == "systemd" else f"service {name} restart"
    what = f"a restart would stop {lost}, since live-restore does not keep them"
    return f"{why}, and {what}. When they may stop: {command}"


def left_to_the_user(host: HostFacts, facts: RuntimeFacts) -> str:
    """The manual step where a restart for a new file would stop others' containers; "": it would not."""
    lost = lost_with(host, facts)
    return when_it_may(host, facts, why_lost(host, facts), lost) if lost else ""


def all_healthy(host: HostFacts, facts: RuntimeFacts) -> tuple[Action, ...]:
    """After a restart of this one: they are up again. Their default may be another by then, and is asked elsewhere."""
    if not engine(facts.name).only_restarts:
        return ()
    asked = (engine(one.name).healthy(one) for one in taken_down(host, facts))
    return tuple(ask for ask in asked if ask is not None)
