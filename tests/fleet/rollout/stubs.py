"""kubectl, scontrol and squeue as small programs: each notes its arguments, one a line, and answers from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Arguments are noted apart, so that one that a shell had split, or had expanded, is told from the one that was given.
KUBECTL = r"""#!/bin/sh
here=${0%/*}
for word; do printf '%s\037' "$word"; done >>"$here/calls"; echo >>"$here/calls"
shift 2
case $1 in
    get) cat "$here/node" 2>/dev/null || { echo 'Error from server (NotFound): nodes not found' >&2; exit 1; } ;;
    cordon)
        { echo true; sed -n 2p "$here/node"; } >"$here/new" && mv "$here/new" "$here/node"
        [ ! -e "$here/close-fails" ] || { echo 'error: timed out' >&2; exit 1; }
        ;;
    uncordon)
        [ ! -e "$here/uncordon-fails" ] || { echo 'error: unable to uncordon' >&2; exit 1; }
        { echo; sed -n 2p "$here/node"; } >"$here/new" && mv "$here/new" "$here/node"
        ;;
    drain)
        [ ! -e "$here/drain-waits" ] || { : >"$here/draining"; exec sleep 600; }
        [ ! -e "$here/drain-fails" ] || { cat "$here/drain-fails" >&2; exit 1; }
        ;;
esac
"""
SCONTROL = r"""#!/bin/sh
here=${0%/*}
for word; do printf '%s\037' "$word"; done >>"$here/calls"; echo >>"$here/calls"
case $1 in
    show) cat "$here/state" 2>/dev/null || { echo 'Node not found' >&2; exit 1; } ;;
    update)
        case $3 in
            State=DRAIN)
                sed -i 's/State=IDLE/State=IDLE+DRAIN/' "$here/state"
                [ ! -e "$here/close-fails" ] || { echo 'error: timed out' >&2; exit 1; }
                ;;
            State=RESUME)
                [ ! -e "$here/resume-fails" ] || { echo 'error: timed out' >&2; exit 1; }
                sed -i 's/+DRAIN//' "$here/state"
                ;;
        esac
        ;;
esac
"""
# Each call takes one line off the jobs: those of one moment.
SQUEUE = r"""#!/bin/sh
here=${0%/*}
head -n 1 "$here/jobs" 2>/dev/null && sed -i 1d "$here/jobs" || exit 0
"""


@dataclass(frozen=True)
class Tools:
    """The directory in which they are, with what they answer."""

    directory: Path

    @staticmethod
    def make(directory: Path) -> Tools:
        directory.mkdir()
        for name, text in (("kubectl", KUBECTL), ("scontrol", SCONTROL), ("squeue", SQUEUE)):
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        (directory / "calls").touch()
        return Tools(directory)

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def node(self, boot_id: str, *, cordoned: bool = False) -> None:
        (self.directory / "node").write_text(f"{'true' if cordoned else ''}\n{boot_id}\n")

    @property
    def cordoned(self) -> bool:
        return (self.directory / "node").read_text().startswith("true")

    @property
    def drained(self) -> bool:
        return "DRAIN" in (self.directory / "state").read_text()

    def set(self, name: str, text: str = "") -> None:
        (self.directory / name).write_text(text)

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call, in order."""
        return [line.split("\037")[:-1] for line in (self.directory / "calls").read_text().splitlines()]
