"""What gpunode's journal says about a host: what to take back, and how it was before. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from gpunode.model.files import FileFacts
from gpunode.model.plan import ForGood, ForUndo
from gpunode.values import dataclass

ABSENT = "absent"  # stands for the hash of a file that is not there


@dataclass(frozen=True)
class PastFile:
    """One file that gpunode changed, over all the runs that are rolled back."""

    path: str
    step: str  # "docker.default": the step that changed it first
    before: str  # sha256 of the bytes from before, or ABSENT
    expected: str | None  # sha256 of what gpunode left there, or ABSENT; None: others wrote to it between two runs
    old: str | None  # the bytes from before, surrogateescape; None: absent then, or the backup is gone
    now: FileFacts  # as it is
    backup: str = ""  # where the old bytes are on the host
    mode: int = 0o644  # before
    owner: str = "0:0"  # before, "UID:GID"
    run_as: str = ""  # "UID:GID" of the user as whom it was written; "": root
    directories: int = 0  # how many directories above it gpunode made, 0 when they are gone or in use without the file
    for_undo: ForUndo = field(default_factory=ForUndo)  # of that step
    interim: FileFacts | None = None  # `now` is what an interrupted undo wrote on its way, and this was to follow it

    @property
    def sha256_now(self) -> str:
        return self.now.sha256 or ABSENT


@dataclass(frozen=True)
class Past:
    """What the runs that are rolled back changed, and how it was before the first of them."""

    journal: bool = False  # this host has one
    runs: tuple[str, ...] = ()  # oldest first
    files: tuple[PastFile, ...] = ()  # in the order they were first written
    engines: tuple[str, ...] = ()  # whose configuration was changed: "docker"
    defaults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # engine -> its default before
    handler: str = "nvidia"  # the runtime that was added
    services: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    # unit that was enabled -> (UnitFileState, ActiveState) before
    masked: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    # the same of units that were masked
    packages: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    # package that was installed or removed -> version before, None when absent
    inventory: str = ""  # path on the host: the names of all packages before; "" when it is gone
    words: frozenset[str] = frozenset()  # of all commands that were run: packages and patterns among them were held
    held: frozenset[str] = frozenset()  # packages that were on hold before
    wrote: tuple[str, ...] = ()  # files that commands wrote and that were not there before: signing keys, CDI
    answers: tuple[tuple[str, str], ...] = ()  # (command, what it said) of those that tell of packages and their keys
    for_good: Mapping[ForGood, str] = field(default_factory=lambda: MappingProxyType({}))
    # what no undo takes back -> the step that did it
    unread: int = 0  # lines of the journal that cannot be read
    last_undo: str = ""  # the run that took back what came before these; "" when there was none
    erasing: bool = False  # a removal of packages by an undo never came to its end
    cut_off: frozenset[str] = frozenset()  # engines whose step of an undo never came to its end
