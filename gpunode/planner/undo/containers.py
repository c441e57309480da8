"""Containers that people started since setup: what they need remains until they are gone, or they are named as lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpunode.advice import listing, named
from gpunode.engines.cri_daemon import CriDaemon
from gpunode.engines.daemon.commands import program_users
from gpunode.engines.registry import ENGINES
from gpunode.model.action import Run
from gpunode.model.containers import Container, Need
from gpunode.model.facts import HostFacts
from gpunode.model.past import Past
from gpunode.model.plan import Kept
from gpunode.planner.undo.engine import kind
from gpunode.remedy import gpunode

MOST = 8  # that are named; the rest are counted
KEEP_HANDLER: frozenset[Need] = frozenset(("handler", "cdi"))
# What each of them is, and what becomes of it without what gpunode added: after a number.
NEEDS: dict[Need, tuple[str, str]] = {
    "handler": ("with the runtime {handler}", "cannot be started, restarted or stopped by the engine any more"),
    "cdi": ("with a CDI device of NVIDIA's", "cannot be started or restarted any more"),
    "gpus": ("made with --gpus", "cannot be started or restarted any more"),
    "program": ("running by nvidia-container-runtime", "cannot be exec'd into or ended any more"),
}


def questions(host: HostFacts, past: Past) -> tuple[tuple[str, Run], ...]:
    """What the host is asked before its undo is planned; nothing where there is nothing to undo."""
    if not past.runs:
        return ()
    asked = ((facts.label, ENGINES[facts.name].containers(host, facts, past.handler)) for facts in host.runtimes)
    return (*((label, run) for label, run in asked if run), ("", program_users()))


def needs_handler(containers: Iterable[Container], label: str) -> bool:
    """A pod with a CDI device is seen as a process alone, with no `engine`: it may be any containerd's."""
    mine = {label, ""} if isinstance(kind(label), CriDaemon) else {label}
    return any(one.engine in mine and one.need in KEEP_HANDLER for one in containers)


def waiting(containers: Sequence[Container], past: Past, *, packages: bool) -> tuple[Kept, ...]:
    """Which containers they are, and what is to be done about them before a later undo removes the rest."""
    again = gpunode("undo", *(("--packages",) if packages else ()))
    names = ", ".join(named(name) for name in dict.fromkeys(one.name for one in containers))
    shown = names if len(containers) <= MOST else f"the {len(containers)} containers that are named above"
    rest = (
        "what setup added besides the default runtime remains until they are gone (--allow-container-loss removes it)"
    )
    return (
        *(Kept("undo.containers", text) for text in _groups(containers, past.handler)),
        Kept("undo.rest", rest, by_hand=f"create anew or remove {shown}; then {again}"),
    )


def lost(containers: Sequence[Container], past: Past) -> tuple[Kept, ...]:
    """The same containers where --allow-container-loss was given."""
    return tuple(Kept("undo.containers", text) for text in _groups(containers, past.handler, fate=True))


def _groups(containers: Sequence[Container], handler: str, *, fate: bool = False) -> Iterator[str]:
    for engine, need in dict.fromkeys((one.engine, one.need) for one in containers):
        names = [one.name for one in containers if (one.engine, one.need) == (engine, need)]
        what, loss = NEEDS[need]
        lead = f"{engine}: " if engine else ""
        count = f"{len(names)} container{'s' if len(names) != 1 else ''} {what.format(handler=handler)}"
        yield f"{lead}{count}{f' {loss}' if fate else ''}: {listing(names, MOST)}"
