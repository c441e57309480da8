"""An earlier run over hosts, as the controller kept it (fleet/runs writes and reads it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum

from gpunode.errors import ExitCode, worst
from gpunode.model.report import HostOutcome
from gpunode.values import dataclass

Key = tuple[str, str]  # of a failure: a check's id, and one thing that its finding is about ("": the host)


@dataclass(frozen=True)
class Controller:
    """The process that runs it; a pid alone may be another's by now."""

    host: str
    pid: int
    started: str = ""  # in ticks since that boot (/proc/PID/stat, field 22); "": not known
    boot: str = ""  # /proc/sys/kernel/random/boot_id; "": not known

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


@dataclass(frozen=True)
class RunHeader:
    """What is written before the first host is changed."""

    id: str  # "20261121T145501Z-4711": sorts by time
    verb: str  # "setup" | "undo" | "fix", which is `check --fix`
    begun: str  # ISO 8601 in UTC, as all times here
    user: str
    controller: Controller
    hosts: tuple[str, ...]  # as they were named
    over_ssh: bool = True
    connection: Mapping[str, object] = field(default_factory=dict)  # options of SSH that were typed: {"user": "root"}
    spec: str | None = None  # as a spec file; None: the verb has none, or it is withheld
    spec_proof: str = ""  # of one that is withheld, or of what was typed over each host's own (fleet/runs/proof)
    ended: str = ""  # "": nobody wrote the end
    rollout: Mapping[str, object] = field(default_factory=dict)  # its options that were typed: {"canary": "2"}
    rules: str = ""  # how the spec's file weighs checks, as such a file; "": it says nothing of them, or is withheld
    codes: Mapping[int, int] = field(default_factory=dict)  # exit code -> how many hosts, once it has ended


class HostState(str, Enum):
    WAITING = "not-begun"
    BEGUN = "at-work"  # or was, where the controller is gone
    ENDED = "ended"


@dataclass(frozen=True)
class PastHost:
    target: str
    state: HostState = HostState.WAITING
    at: str = ""  # when it came to this state; "" for what has not begun
    outcome: HostOutcome | None = None  # what a text says of it; with ENDED only
    closed: tuple[str, ...] = ()  # what lets work come to it again, to be typed; () where the run left it open
    # Which checks failed before it was changed; None where it was not, ended well since, or was not looked at.
    failing: frozenset[Key] | None = None

    @property
    def done(self) -> bool:
        return self.outcome is not None and self.outcome.code is ExitCode.DONE


def code_of(hosts: Sequence[PastHost]) -> ExitCode:
    """As the hosts of a run ended; FAILED for one that has not, and for no hosts: of nothing no success is known."""
    return worst([host.outcome.code if host.outcome else ExitCode.FAILED for host in hosts] or [ExitCode.FAILED])


@dataclass(frozen=True)
class PastRun:
    header: RunHeader
    hosts: tuple[PastHost, ...] = ()
    torn: int = 0  # lines that are not whole: what they said is lost
    lives: bool | None = None  # whether its controller does; None: it runs, or ran, on another machine

    @property
    def not_done(self) -> tuple[str, ...]:
        """The hosts that did not end well, or not at all."""
        return tuple(host.target for host in self.hosts if not host.done)

    @property
    def failing(self) -> dict[str, frozenset[Key]]:
        """Of hosts that the run changed and that did not end well: which checks failed before that."""
        return {host.target: host.failing for host in self.hosts if host.failing is not None}

    @property
    def closed(self) -> tuple[tuple[str, str], ...]:
        """Hosts to which the run let no work come, and did not open again; each with the command that does."""
        return tuple((host.target, command) for host in self.hosts for command in host.closed)

    def in_state(self, *states: HostState) -> tuple[str, ...]:
        return tuple(host.target for host in self.hosts if host.state in states)


@dataclass(frozen=True)
class Overruled:
    """A host in two of the runs that were merged."""

    target: str
    run: str  # whose word does not count
    by: str  # the later one


@dataclass(frozen=True)
class MergedRuns:
    """Several runs as one: the shards of an inventory."""

    headers: tuple[RunHeader, ...]
    hosts: tuple[PastHost, ...]
    torn: int = 0
    overruled: tuple[Overruled, ...] = ()
