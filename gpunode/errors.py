"""Every way gpunode can fail, as one tree, with the exit code a caller can rely on.

    GpunodeError                what, how we know, what now; carries an exit code
    ├── UsageError              2  the command line, spec or inventory is wrong; nothing was touched
    ├── TransportError          3  a host could not be reached, logged in to, or its answer makes no sense
    ├── UnsupportedHost         4  this host or request is not supported; the message lists what is
    │   └── HostBusy            4  not now: its GPUs or pods are at work; a fleet skips it
    ├── ConfigFileError         1  another program's config file cannot be read safely; it is unchanged
    ├── StepFailed              1  a step failed; what it changed was rolled back
    ├── Drift                   7  the host changed since the plan was made; nothing was written
    └── HostLocked              8  another gpunode holds this host's lock

Foreseen outcomes of work are values in reports (4: an engine was refused, and the rest done; 5: the rollback failed
too, manual recovery required; 6: a reboot or another manual step; 9: warnings only); an error here means "cannot go on
with this host".
It becomes words and an exit code in exactly two places: cli/errors.py and fleet/run.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpunode.remedy import Remedy


class ExitCode(IntEnum):
    """What a caller can rely on (docs/reference/exit-codes.md)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNSUPPORTED = 4
    ROLLBACK_FAILED = 5
    REBOOT_NEEDED = 6
    DRIFT = 7
    LOCKED = 8
    WARNINGS = 9


# Most severe first: a fleet exits with the worst code of its hosts.
SEVERITY = (
    ExitCode.ROLLBACK_FAILED,
    ExitCode.FAILED,
    ExitCode.UNREACHABLE,
    ExitCode.DRIFT,
    ExitCode.LOCKED,
    ExitCode.UNSUPPORTED,
    ExitCode.USAGE,
    ExitCode.REBOOT_NEEDED,
    ExitCode.WARNINGS,
    ExitCode.DONE,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The code a fleet ends with: the most severe of its hosts' codes, DONE for no hosts."""
    return min(codes, key=SEVERITY.index, default=ExitCode.DONE)


class GpunodeError(Exception):
    """A problem the user can act on: the sentence, the evidence behind it, and the next move.

    A remedy that names a command of gpunode is a Remedy; mere prose is one with the class's `action`.
    """

    code = ExitCode.FAILED
    action = "none"  # of prose: a value of RepairAction
    check = ""  # the id of the check that it answers, where it is why a host has no report

    def __init__(self, problem: str, *, evidence: str = "", remedy: Remedy | str = "") -> None:
        from gpunode.remedy import RepairAction, remedy_of  # late: --help loads this file, and no error is made

        super().__init__(problem)
        self.problem = problem
        self.evidence = evidence
        self.remedy = remedy_of(remedy, RepairAction(self.action))


class UsageError(GpunodeError):
    """What was typed or written in a spec is wrong. Nothing was touched."""

    code = ExitCode.USAGE


class TransportError(GpunodeError):
    """The host could not be reached or logged in to, or its answer was truncated."""

    code = ExitCode.UNREACHABLE


class UnsupportedHost(GpunodeError):
    """This host or request is outside what gpunode knows how to do."""

    code = ExitCode.UNSUPPORTED


class HostBusy(UnsupportedHost):
    """Not now: what runs on the host would be disturbed. Nothing of it was changed; a fleet skips it."""

    action = "wait"


class ConfigFileError(GpunodeError):
    """A config file that belongs to another program cannot be parsed or edited safely. It is unchanged."""

    code = ExitCode.FAILED
    action = "configure"


class StepFailed(GpunodeError):
    """A step failed; what it had changed was rolled back."""

    code = ExitCode.FAILED


class Drift(GpunodeError):
    """A file or fact is no longer what the plan was made from. Nothing was written."""

    code = ExitCode.DRIFT


class HostLocked(GpunodeError):
    """Another gpunode is working on this host."""

    code = ExitCode.LOCKED
    action = "wait"
