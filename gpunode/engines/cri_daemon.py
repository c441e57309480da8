"""Daemons with a CRI, embedded or not: restarted, since none reloads its runtimes, and asked by CRI Status."""

from __future__ import annotations

from gpunode.engines.base import Engine, Rewrite
from gpunode.engines.daemon import commands
from gpunode.model.action import Action, Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec


class CriDaemon(Engine):
    """An engine that kubelet asks over CRI, and how it takes a new file."""

    # containerd's: runc is built in, and 1.x knows its legacy tables default_runtime and untrusted_workload_runtime by
    # the other two.
    own_handlers: tuple[str, ...] = ("runc", "default", "untrusted")
    only_restarts = True
    api: commands.Api = "cri"  # by which its daemon reports what it runs with

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        return None

    def containers(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> Run | None:
        return commands.containers(engine, handler, api="cri")

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        # SIGHUP kills containerd. CRI-O's takes the runtimes as well, from which release on is not known: a restart
        # holds for all. Pods live on in their shims, or under their conmon.
        return (commands.restart(engine.unit),)

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        return commands.verify(engine, want.handler if want.default else f"+{want.handler}", api=self.api)

    def healthy(self, engine: RuntimeFacts) -> Run:
        return commands.verify(engine, "-", api=self.api)

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        """After the old bytes are restored: run them, and prove the old default where there was one to ask for."""
        if not rewrite.changed:
            # The file was right before this step, so there is no older one to run again.
            return (commands.revive(engine.unit),)
        if engine.cri_error:
            # CRI was broken before this step, so there is no healthy state to restore.
            return (commands.restart(engine.unit),)
        return (commands.restart(engine.unit), commands.verify(engine, engine.effective_default or "-", api=self.api))
