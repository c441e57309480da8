"""What one step of a plan does on the host."""

from __future__ import annotations

from gpunode.values import dataclass

WHATEVER = tuple(range(256))  # after a failure the rest of the rollback matters more than one command of it


@dataclass(frozen=True)
class Run:
    """One command on the host. Joined to a shell line in one place only (apply/execute.py)."""

    argv: tuple[str, ...]
    ok_codes: tuple[int, ...] = (0,)
    timeout_s: float = 120
    env: tuple[tuple[str, str], ...] = ()
    stdin: str = ""  # text fed to the command; scripts (sh -s) and generated input, never a secret
    detach: bool = False  # runs as its own unit on the host and is re-attached to: package transactions
    retry: tuple[float, ...] = ()  # pauses in seconds before each further try, while the code is not in `ok_codes`
    packages: tuple[str, ...] = ()  # names that this command installs or removes: undo goes by them
    files: tuple[str, ...] = ()  # files that this command itself writes, so that undo knows about them
    description: str = ""  # for the reader: "apt-get install nvidia-open"; "" = the argv
    read_only: bool = False  # it changes nothing: where only such commands ran, there is nothing to undo
    remedies: tuple[tuple[int, str], ...] = ()  # exit code -> what to fix before the command is run again
    record_output: bool = False  # kept in the journal: the resolver's answer, the versions that were found
    restarts: str = ""  # the unit that this command restarts, "docker.service"; "" = none


@dataclass(frozen=True)
class PutFile:
    """Write a file whole and atomically; keeps owner, mode and symlink of the one it replaces."""

    path: str
    text: str  # surrogateescape keeps bytes that are not UTF-8
    mode: int = 0o644  # for a new file; an existing one keeps its own
    expect_sha256: str | None = None  # of the file before; None: it must be absent
    validate: Run | None = None  # before the rename; {candidate} in its argv or stdin becomes the new file's path
    any_before: bool = False  # a file only gpunode owns: whatever was there before may be replaced
    owner: str = ""  # "UID:GID" of the user in whose home it is, as whom all of it is written; "": root


@dataclass(frozen=True)
class RemoveFile:
    path: str
    expect_sha256: str | None = None  # None: whatever is there
    owner: str = ""  # as in PutFile


@dataclass(frozen=True)
class Reboot:
    wait_s: float = 600


Action = Run | PutFile | RemoveFile | Reboot
