"""What a container engine is to gpunode: a file to rewrite, a way to apply it, and a way to ask the daemon."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gpunode.engines.provenance import Origin
from gpunode.facts.readers import Reader
from gpunode.model.action import Action, Run
from gpunode.model.active import Trial
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import RuntimeSpec


class Edit(NamedTuple):
    """One config file after the change. Equal text means nothing to do."""

    path: str
    before: str | None  # None: the file is absent
    after: str
    mode: int = 0o644  # for a new file; an existing one keeps its own

    @property
    def changed(self) -> bool:
        # An absent file is not written to be empty.
        return (self.before or "") != self.after


class Rewrite(NamedTuple):
    """What an engine's configuration becomes: mostly one file; a drop-in comes before the file that imports it."""

    edits: tuple[Edit, ...]  # in the order they are written
    added: tuple[str, ...]  # for the plan's line: "+ runtimes.nvidia", "default-runtime runc → nvidia"
    notes: tuple[str, ...] = ()  # sentences for the plan's why: what was copied, what does not fit together
    binaries: tuple[str, ...] = ()  # executables that the new text names: without them no container would start
    needs_restart: bool = False  # the engine's reload does not take this change (docker: features.cdi)

    @property
    def changed(self) -> bool:
        return any(edit.changed for edit in self.edits)

    @property
    def main(self) -> Edit:
        """The file that decides: where to look first."""
        return self.edits[0]


class Removal(NamedTuple):
    """What an undo takes out of a file that others have written to since gpunode did."""

    handler: str
    default: str | None = None  # the daemon's default runtime before; None when it is not known
    before: str | None = None  # the file's text before, "" when there was none; None when it is not known any more
    gone: tuple[str, ...] = ()  # files that go in the same step: nothing may import them
    keep_handler: bool = False  # containers still use it: only the default goes


class Disk(Protocol):
    """Files of this machine, or of an image's directory."""

    def read(self, path: str) -> FileFacts: ...

    def named(self, pattern: str) -> list[str]:
        """The files that a glob names, read, in the order of their names."""
        ...


class Alone(NamedTuple):
    """An engine's file without its daemon: what `rewrite` is given in place of what a host reports."""

    main: FileFacts
    want: RuntimeSpec
    daemon: str | None = None  # of the daemon or the Kubernetes distribution; None: whichever reads the file
    imports: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


class Engine(Protocol):
    """All in which one engine differs from another. A new one is a class of this, registered in registry.py."""

    name: str
    reader: Reader | None = None  # of its section of the probe; the built-in ones' are in facts/engines.py
    title: str  # what apply does, for the plan's line: "reload, no container restarts"
    default_key: str  # what its files call the default runtime: "default_runtime_name"
    labels: str | None = None  # how several on one host are distinguished, for `--runtime`'s help; None: not at all
    users_unit: str = ""  # the user unit of a rootless one; "": there is none
    embedded: bool = False  # its daemon is the child of a Kubernetes distribution, and is not started by itself
    hangs_up: bool = False  # without systemd, a SIGHUP makes its daemon read its file again
    only_restarts: bool = False  # its daemon takes a new file by a restart alone
    restart_keeps: str = ""  # what a manual restart means for containers; "": not known
    movable: bool = False  # the user may name another file than `config`
    takes_drop_in: bool = False  # the user may choose the file that is added next to `config`
    own_handlers: tuple[str, ...] = ()  # runtimes that it has by itself, as globs: no handler may be called so
    # What a handler of such a name would do, for the message.
    own_handlers_are: str = "an entry of that name would replace it, and start containers that ask for it with NVIDIA's"
    schemas: tuple[int, ...] = ()  # of a new file, where the user may choose one

    @property
    def config(self) -> str:
        """The file it reads by default."""
        ...

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        """The engine's config with `want` merged in; other settings, comments and order are unchanged.

        Raises ConfigFileError (line and column) for a file that does not parse or cannot be edited safely, and
        UnsupportedHost for an engine that gpunode must not touch (snap, a flag that sets the same option).
        """
        ...

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        """Why this engine needs no GPU runtime unless someone asks for it by name; None when it does need one."""
        ...

    def validate(self, engine: RuntimeFacts, path: str) -> Run | None:
        """Ask the daemon's own binary about the candidate for `path`; None where it has no such verb."""
        ...

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        """What makes the running daemon take the new file: gently, or by a restart where `restart` asks for it."""
        ...

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        """Ask the running daemon; exit 0 when it is healthy and its effective default is the wanted one."""
        ...

    def healthy(self, engine: RuntimeFacts) -> Run | None:
        """Ask the running daemon; exit 0 when it is healthy, whatever its default is. None without a daemon."""
        return None

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        """After the old bytes are restored: make the daemon run them again and prove that it does."""
        ...

    def without(self, path: str, text: str, removal: Removal) -> str:
        """`text` without what `rewrite` put into the file, all else unchanged; "" when no setting is left.

        Raises ConfigFileError for a text that cannot be edited safely.
        """
        ...

    def origins(self, host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
        """The settings that decide which runtime a container gets, each with its place; files read as `rewrite` does.

        A file that was not read, or that does not parse, counts for nothing: the daemon reports what it runs with.
        """
        ...

    def lasting(self, path: str) -> str:
        """The path by which a file is found again after its engine is upgraded."""
        return path

    def containers(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> Run | None:
        """Ask which of its containers need the handler (shell/daemon/containers.sh); None: nobody can tell."""
        return None

    def trials(self, host: HostFacts, engine: RuntimeFacts, handler: str) -> tuple[Trial, ...]:
        """The ways in which its users start a container with the GPU (shell/active); () where none is tried."""
        return ()

    def late(self, engine: RuntimeFacts, want: RuntimeSpec) -> bool:
        """Whether the running daemon lacks what its file has, and only a restart loads it."""
        return False

    def start_misses(self, host: HostFacts, engine: RuntimeFacts, *, coming: bool = False) -> str:
        """Why the running daemon needs a restart whatever its file has, as a sentence; "": it needs none.

        `coming`: the toolkit is about to be installed.
        """
        return ""

    def start_found(self, engine: RuntimeFacts) -> tuple[Action, ...]:
        """After a restart: exit 0 when the daemon found what `start_misses` reported."""
        return ()

    def lost_by_restart(self, host: HostFacts, engine: RuntimeFacts) -> str:
        """The containers that a restart of the daemon would stop, for people; "" when it stops none."""
        return ""

    def undone_by_restart(self, now: str, restored: str) -> bool:
        """Whether a file that goes from `now` to `restored` takes away what only a restart takes away."""
        return False

    def around(self, main: str) -> tuple[str, ...]:
        """Globs of the files that are read with the main one."""
        return ()

    def alone(self, disk: Disk, asked: Alone, schema: int | None) -> Alone:
        """What `rewrite` is given where there is only a file; reads what lies around it.

        Raises UsageError for a schema that is none, or not that of the file.
        """
        for pattern in self.around(asked.main.path):
            disk.named(pattern)
        return asked

    def next_words(self, path: str, *, restart: bool) -> tuple[str, ...]:
        """The commands to run after a file was changed without its daemon. `restart`: Rewrite.needs_restart."""
        return (f"{self.name} was not restarted; run: systemctl restart {self.name}",)
