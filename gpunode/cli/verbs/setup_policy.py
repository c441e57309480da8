"""The options of a rollout -> its policy, and who drains its hosts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from gpunode.cli.hosts import one_of, whole_number
from gpunode.cli.options.groups import typed
from gpunode.cli.options.rollout import RolloutOptions, WaveOptions
from gpunode.errors import UsageError
from gpunode.fleet.rollout.drain import DEFAULT_TIMEOUT_S, MOST_TIMEOUT_S, Scheduler
from gpunode.fleet.rollout.gate import local_now
from gpunode.fleet.rollout.kubernetes_node import Kubernetes
from gpunode.fleet.rollout.policy import MOST, MOST_REBOOT_S, NO_LIMIT, Policy, Share
from gpunode.fleet.rollout.slurm_node import Slurm
from gpunode.fleet.rollout.window import parse_window
from gpunode.foreign import read_file


def refuse_elsewhere(options: WaveOptions, *, ssh: bool) -> None:
    """Raises UsageError for what would be ignored: one machine has no fleet to go through."""
    flags = typed(options)
    if flags and not ssh:
        raise UsageError(f"{flags[0]} is for hosts over SSH", remedy="name them with --ssh, or leave it out")


def policy(options: WaveOptions) -> Policy:
    """Raises UsageError with what is wrong, before a host is asked."""
    one_of("--on-host-error", options.on_host_error, ("continue", "stop"))
    wanted = Policy(
        whole_number("--canary", options.canary, 1, MOST) or 0,
        _share("--batch", options.batch, 1),
        _failures(options),
        window=parse_window(options.not_before, options.not_after, local_now()),
    )
    if isinstance(options, RolloutOptions):
        return replace(
            wanted,
            max_reboots=_share("--max-reboots", options.max_reboots, 1),
            reboot_wait_s=whole_number("--reboot-timeout", options.reboot_timeout, 1, MOST_REBOOT_S),
        )
    return wanted


def _share(flag: str, text: str | None, least: int) -> Share | None:
    return None if text is None else Share.parse(flag, text, least=least)


def _failures(options: WaveOptions) -> Share | None:
    most = _share("--max-failures", options.max_failures, 0)
    if options.on_host_error is None:
        return most
    if most is not None:
        raise UsageError(
            "--max-failures and --on-host-error exclude each other",
            evidence="--on-host-error stop is --max-failures 0, and continue is no limit",
            remedy="leave one of them out",
        )
    return Share(0) if options.on_host_error == "stop" else NO_LIMIT


def schedulers(options: RolloutOptions) -> tuple[Scheduler, ...]:
    """Who is to drain hosts. Raises UsageError where its programs are not on this machine."""
    timeout_s = whole_number("--drain-timeout", options.drain_timeout, 1, MOST_TIMEOUT_S) or DEFAULT_TIMEOUT_S
    _refuse_unread(options)
    found: list[Scheduler] = []
    if options.drain_kubernetes is not None:
        kubectl = _program("kubectl", "--drain-kubernetes")
        found.append(Kubernetes(kubectl, _readable(options.drain_kubernetes), timeout_s, options.delete_emptydir_data))
    if options.drain_slurm:
        found.append(Slurm(_program("scontrol", "--drain-slurm"), _program("squeue", "--drain-slurm"), timeout_s))
    return tuple(found)


def _refuse_unread(options: RolloutOptions) -> None:
    if options.drain_timeout is not None and not (options.drain_kubernetes or options.drain_slurm):
        raise UsageError("--drain-timeout has no drain to limit", remedy="add --drain-kubernetes or --drain-slurm")
    if options.delete_emptydir_data and not options.drain_kubernetes:
        raise UsageError("--delete-emptydir-data is for --drain-kubernetes", remedy="add that, or leave it out")


def _program(name: str, flag: str) -> str:
    if path := shutil.which(name):
        return str(Path(path).absolute())
    raise UsageError(
        f"{flag} needs {name}, which is not on this machine",
        evidence=f"no directory of PATH has {name}",
        remedy=f"install {name} where gpunode runs, or put its directory into PATH",
    )


def _readable(path: Path) -> Path:
    """Absolute, for programs that are started elsewhere. Raises UsageError where it cannot be read again and again."""
    try:
        if not path.is_file() or not read_file(path, 1):
            raise UsageError(
                f"--drain-kubernetes {path} is {'empty' if path.is_file() else 'no file'}",
                remedy="name a kubeconfig of the nodes' cluster",
            )
    except OSError as error:
        raise UsageError(
            f"--drain-kubernetes {path} cannot be read",
            evidence=error.strerror or str(error),
            remedy="name a kubeconfig of the nodes' cluster",
        ) from error
    return path.absolute()
