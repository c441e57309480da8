"""Whether gpunode can make a running engine read its new file, and the commands to run where it cannot."""

from __future__ import annotations

from gpunode.advice import named, typed
from gpunode.engines.registry import engine
from gpunode.model.facts import HostFacts, RuntimeFacts


def runs(host: HostFacts, facts: RuntimeFacts) -> bool:
    """Whether there is a daemon (or, without one, a program) that reads the file today. In a chroot there is none."""
    return facts.active and host.init != "chroot"


def has_failed(host: HostFacts, facts: RuntimeFacts) -> bool:
    """systemd tried to start it and could not, or has given up: a new file may be what it needs."""
    unit = host.services.get(facts.unit) if not facts.user else None
    if host.init != "systemd" or facts.active or unit is None:
        return False
    return unit.active == "failed" or unit.sub == "auto-restart"


def restarts(host: HostFacts, facts: RuntimeFacts) -> bool:
    """Whether a new file that only a start brings into force makes gpunode start it again."""
    return has_failed(host, facts) or (runs(host, facts) and reachable(host, facts, restart=True))


def reachable(host: HostFacts, facts: RuntimeFacts, *, restart: bool) -> bool:
    """systemd starts every daemon again; without it a SIGHUP reaches dockerd, and a script in /etc/init.d restarts."""
    if host.init == "systemd" or not engine(facts.name).apply(facts, restart=restart):
        return True
    if engine(facts.name).hangs_up and not restart:
        return True
    return facts.unit.removesuffix(".service") in host.init_scripts


def by_hand(host: HostFacts, facts: RuntimeFacts) -> str:
    """The commands to run for a daemon that nothing would restart. Not for root where the binary is a user's own."""
    kind = engine(facts.name)
    if kind.embedded:
        # Its containerd is its child: that one is not to be started by itself.
        return f"{facts.name} must be stopped and started again by whoever started it"
    if facts.user:
        return f"{facts.label} must be started anew by {named(facts.user)}, who started it"
    binary = facts.binary or facts.unit.removesuffix(".service")
    # Not by name: dockerd has a containerd of its own.
    stop = f"kill {facts.pid}" if facts.pid else f"stop {named(binary.rsplit('/', 1)[-1])}"
    keeps = f" ({kind.restart_keeps})" if kind.restart_keeps else ""
    where = named(host.hostname) if host.hostname else "this host"
    again = typed(binary, *facts.flags)
    return (
        f"{facts.name} must be started anew by whoever started it, since nothing on {where} "
        f"does{keeps}: {stop}; {again} &"
    )
