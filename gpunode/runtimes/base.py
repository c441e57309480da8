"""What a container engine is to gpunode: a file to rewrite, a way to apply it, and a way to ask the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import Action, Run
from gpunode.model.spec import RuntimeSpec


@dataclass(frozen=True)
class Rewrite:
    """A config file after the change. Equal text means nothing to do."""

    path: str
    before: str | None  # None: the file is absent
    after: str
    added: tuple[str, ...]  # for the plan's line: "+ runtimes.nvidia", "default-runtime runc → nvidia"


class Runtime(Protocol):
    name: str

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        """The engine's config with `want` merged in; their settings, comments and order survive.

        Raises ConfigFileError (line and column) for a file that does not parse or cannot be edited safely, and
        UnsupportedHost for an engine that gpunode must not touch (snap, a flag that sets the same option).
        """
        ...

    def validate(self, engine: RuntimeFacts) -> Run | None:
        """Ask the daemon's own binary about the candidate file; None where it has no such verb."""
        ...

    def apply(self, engine: RuntimeFacts) -> tuple[Action, ...]:
        """What makes the running daemon take the new file (reload or restart)."""
        ...

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        """Ask the running daemon; exit 0 when it is healthy and its effective default is the wanted one."""
        ...

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite) -> tuple[Action, ...]:
        """After the old bytes are back: make the daemon run them again and prove that it does."""
        ...
