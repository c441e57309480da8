"""Daemons that speak CRI, whoever carries them: restarted, since none reloads its runtimes, and asked by CRI Status."""

from __future__ import annotations

from gpunode.catalog.versions import first_with
from gpunode.editing.plain import Plain
from gpunode.engines.base import Rewrite
from gpunode.engines.containerd.cri_section import Around
from gpunode.engines.daemon import commands
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import Action, Run
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least


def refuse_no_cdi(engine: RuntimeFacts, want: RuntimeSpec) -> None:
    """Raises UnsupportedHost where CDI is wanted of a containerd that has none."""
    if want.cdi and engine.version and not at_least(engine.version, first_with("containerd", "cdi")):
        of = "" if engine.name == "containerd" else f" of {engine.name}"
        raise UnsupportedHost(
            f"containerd {engine.version}{of} has no CDI",
            evidence="enable_cdi came with containerd 1.7",
            remedy=f"leave out --cdi, or upgrade {engine.name}",
        )


def around(host: HostFacts, engine: RuntimeFacts, merged: Plain, *, keep_runc: bool) -> Around:
    """What a file's own text does not say; `merged`: what the daemon makes of all its files."""
    return Around(
        merged=merged,
        keep_runc=keep_runc,
        kubelet_driver=host.kubernetes.kubelet_cgroup_driver if host.kubernetes.kubelet else None,
        cdi_by_default=at_least(engine.version, first_with("containerd", "cdi-by-default")),
    )


def verify(engine: RuntimeFacts, want: RuntimeSpec) -> Run:
    return commands.verify(engine, want.handler if want.default else f"+{want.handler}")


def undo(engine: RuntimeFacts, rewrite: Rewrite) -> tuple[Action, ...]:
    """After the old bytes are back: run them, and prove the old default where there was one to ask for."""
    if not rewrite.changed:
        # The file was right before this step, so there is no older one to run again.
        return (commands.revive(engine.unit),)
    if engine.cri_error:
        # CRI was broken before this step, so there is no health to come back to.
        return (commands.restart(engine.unit),)
    return (commands.restart(engine.unit), commands.verify(engine, engine.effective_default or "-"))
