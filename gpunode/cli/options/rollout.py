"""How a run goes through a fleet: the options of setup and undo. verbs/setup_policy.py reads them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from gpunode.cli.options.groups import option
from gpunode.values import dataclass

_rollout = partial(option, heading="Rollout")
OF_REBOOTS = ("--max-reboots", "--reboot-timeout")  # where nothing reboots, these have nothing to limit


@dataclass(frozen=True)
class WaveOptions:
    """Which hosts go first, and what stops the others."""

    canary: Annotated[str | None, _rollout("--canary", metavar="N", help="These hosts first; if one fails, stop.")] = (
        None
    )
    batch: Annotated[
        str | None, _rollout("--batch", metavar="N|N%", help="So many at once, then the next (default all).")
    ] = None
    max_failures: Annotated[
        str | None,
        _rollout("--max-failures", metavar="N|N%", help="More stop it (default 10% with canary or batch, else any)."),
    ] = None
    on_host_error: Annotated[
        str | None,
        _rollout("--on-host-error", metavar="continue|stop", help="stop is --max-failures 0."),
    ] = None
    not_before: Annotated[
        str | None, _rollout("--not-before", metavar="TIME", help="Wait until 22:00, or 2026-12-01T22:00+01:00.")
    ] = None
    not_after: Annotated[
        str | None, _rollout("--not-after", metavar="TIME", help="Begin nothing from then on, and reboot nobody.")
    ] = None


@dataclass(frozen=True)
class RolloutOptions(WaveOptions):
    """The same for a verb that may reboot hosts and stop their work."""

    max_reboots: Annotated[
        str | None,
        _rollout(
            "--max-reboots", metavar="N|N%", help="Reboot so many at once (default a tenth of a batch, never all)."
        ),
    ] = None
    reboot_timeout: Annotated[
        str | None,
        _rollout("--reboot-timeout", metavar="SECONDS", help="A host that is not back by then failed (default 900)."),
    ] = None
    drain_kubernetes: Annotated[
        Path | None,
        _rollout("--drain-kubernetes", metavar="KUBECONFIG", help="Drain a node before what stops its GPUs or pods."),
    ] = None
    drain_slurm: Annotated[bool, _rollout("--drain-slurm", help="The same, of Slurm: wait until it has no job.")] = (
        False
    )
    drain_timeout: Annotated[
        str | None, _rollout("--drain-timeout", metavar="SECONDS", help="Else the host is skipped (default 600).")
    ] = None
    delete_emptydir_data: Annotated[
        bool, _rollout("--delete-emptydir-data", help="Evict pods that lose an emptyDir by it too.")
    ] = False
