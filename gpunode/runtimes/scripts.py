"""The POSIX sh that asks and restarts daemons on the host, as Run values; fed on stdin, it leaves nothing there."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.model.facts import RuntimeFacts
from gpunode.model.plan import Run
from gpunode.resources import text

POLL_S = 30  # a daemon was healthy 0.4 to 10 s after a restart on busy two-core machines


def verify(engine: RuntimeFacts, expected: str, *, ok: tuple[int, ...] = (0,)) -> Run:
    """Exit 0 when the running daemon is healthy, its process is stable and its runtimes are as `expected`.

    `expected`: "nvidia": it is the effective default; "+nvidia": it is known; "-": any, only health counts.
    """
    argv = ("sh", "-s", "--", engine.name, engine.socket, expected, engine.unit, str(POLL_S))
    return Run(
        (*argv, engine.binary or engine.name, engine.config_path),
        ok=ok,
        timeout_s=POLL_S + 60,
        stdin=text("runtimes/effective.sh") + text("runtimes/unit.sh") + text("runtimes/verify.sh"),
        says=f"ask the running {engine.name} for its default runtime",
    )


def restart(unit: str, also_reset: Sequence[str] = ()) -> Run:
    """`systemctl restart`, past a start limit that earlier failures used up; the daemon's own reason when it fails."""
    return _unit_script("gpunode_restart", unit, also_reset, f"systemctl restart {unit}")


def revive(unit: str, also_reset: Sequence[str] = ()) -> Run:
    """Restart only when the unit is not active."""
    return _unit_script("gpunode_revive", unit, also_reset, f"start {unit} again if it is down")


def _unit_script(function: str, unit: str, also_reset: Sequence[str], says: str) -> Run:
    return Run(
        ("sh", "-s", "--", unit, *(u for u in also_reset if u != unit)),
        timeout_s=120,  # dockerd 20.10 has no start limit of its own (TimeoutStartSec=0)
        stdin=text("runtimes/unit.sh") + f'\n{function} "$@"\n',
        says=says,
    )
