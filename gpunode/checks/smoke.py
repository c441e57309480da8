"""What active tests showed: does a container really get the GPU? Each is asked for by an option."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, Need, check
from gpunode.checks.rt.engines import wanted
from gpunode.model.active import ActiveTests, ContainerTrial, ContainerView, Trial
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts
from gpunode.model.plan import engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "runtime")
SYMLINKS = "nvidia-ctk system create-dev-char-symlinks --create-all"


def trials(host: HostFacts, context: Context) -> tuple[Trial, ...]:
    """How the engines of this host that should have the GPU are tried; engines without a daemon are, too."""
    from gpunode.engines.registry import engine

    with_daemon = [one for one in wanted(host, context) if one.unit]
    engines = (*with_daemon, *(one for one in host.runtimes if not one.unit and not one.user))
    return tuple(trial for one in engines for trial in engine(one.name).trials(host, one, context.handler))


def asked(option: str, read: Callable[[ActiveTests], bool]) -> Need:
    """That test was asked for."""

    def why(host: HostFacts) -> str | None:
        if host.active is not None and read(host.active.asked):
            return None
        return f"it was not asked for: {option} runs something on the host"

    return why


def _containers(host: HostFacts) -> tuple[ContainerTrial, ...]:
    return host.active.containers if host.active else ()


@check(
    "smoke.container-gpu",
    Severity.ERROR,
    title="a container that each engine starts sees the GPUs (--smoke)",
    reads="a container of this host's own files: its /dev/nvidia* and nvidia-smi -L",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=(asked("--smoke", lambda a: a.containers), needs.gpu, needs.host_driver),
)
def container_gpu(host: HostFacts, context: Context) -> CheckOutcome:
    """A container that an engine starts as its users do does not get the GPU, or does not start.

    The engine's own command line starts it, with an image of this host's shell and C library: nothing is pulled.
    """
    seen = _containers(host)
    if not seen:
        return NotApplicable("no engine runs here that the spec includes and that gpunode can try")
    failed = [(one, why) for one in seen if (why := one.refused or (one.first and lacks(one.first, host)) or "")]
    if not failed:
        return _unknown([(one, one.unknown) for one in seen if one.first is None])
    engines = dict.fromkeys(one.trial.engine for one, _ in failed)
    return Finding(
        f"a container of {listing(engines)} does not get the GPU",
        evidence=_quoted(failed),
        remedy=Remedy(RepairAction.CONFIGURE, SETUP),
        steps=tuple(engine_step(label) for label in engines),
        otherwise=_otherwise(failed),
        entities=unit(*dict.fromkeys(one.trial.unit for one, _ in failed)),
    )


def lacks(view: ContainerView, host: HostFacts) -> str:
    """What of the GPUs a container does not have; "": it has them all."""
    gpus = [node for node in view.nodes if re.fullmatch("/dev/nvidia[0-9]+", node)]
    if not gpus:
        return "no /dev/nvidia0 is in it"
    denied = [one for one in view.closed if one.endswith(("not permitted", "denied"))]
    if denied:
        return listing(denied)
    if view.smi_code is None:
        return listing(view.closed)
    listed = [line for line in view.smi if re.match(r"GPU [0-9]+: ", line)]
    if view.smi_code != 0 or not listed:
        return f"nvidia-smi -L in it: exit code {view.smi_code}, {view.smi[0] if view.smi else 'no output'}"
    there = len(host.driver.smi.gpus) if host.driver.smi and host.driver.smi.code == 0 else 0
    return f"nvidia-smi -L in it lists {len(listed)} of {there} GPUs" if len(listed) < there else ""


def _quoted(failed: Sequence[tuple[ContainerTrial, str]]) -> str:
    return listing((f"{one.trial.typed}: {why}" for one, why in failed), between="; ", what="more ways")


def _otherwise(failed: Sequence[tuple[ContainerTrial, str]]) -> Remedy:
    """Where setup has nothing to change."""
    if any("ermission denied" in why for _, why in failed):
        return Remedy(RepairAction.CONFIGURE, "on a host with SELinux: setsebool -P container_use_devices on")
    units = [one.trial.unit for one, _ in failed if one.trial.unit]
    log = f"journalctl -b -u {named(units[0])}" if units else "nvidia-ctk cdi list"
    return Remedy(RepairAction.SUPPORT, f"{log} shows more of it; then report it")


def _unknown(unknown: Sequence[tuple[ContainerTrial, str]]) -> CheckOutcome:
    if not unknown:
        return None
    return NotApplicable(
        listing((f"{one.trial.typed}: {why or 'nothing was seen'}" for one, why in unknown), between="; ")
    )


@check(
    "smoke.daemon-reload",
    Severity.ERROR,
    title="a running container keeps the GPUs over systemctl daemon-reload (--survive-reload)",
    reads="the same container before and after systemctl daemon-reload",
    remedy=Remedy(RepairAction.CONFIGURE, SYMLINKS),
    needs=(asked("--survive-reload", lambda a: a.survive_reload), needs.gpu, needs.host_driver),
)
def daemon_reload(host: HostFacts, context: Context) -> CheckOutcome:
    """A running container loses the GPU when systemd reloads its units, as at every upgrade of a package with one.

    systemd then sets the container's device rules anew, by the links in /dev/char: a device without one is no longer
    allowed (nvidia-container-toolkit#48; seen with runc 1.1.5 of docker 20.10 and of containerd 1.6, under systemd 252;
    systemd 257 does so once a unit's properties change).
    """
    with_gpu = [one for one in _containers(host) if one.first is not None and not lacks(one.first, host)]
    if not with_gpu:
        return NotApplicable("no container had the GPU before the reload (smoke.container-gpu)")
    if host.active and host.active.reload:
        return NotApplicable(f"systemd did not reload: {host.active.reload}")
    lost = [(one, why) for one in with_gpu if one.reloaded and (why := lacks(one.reloaded, host))]
    if not lost:
        return _unknown([(one, one.unknown) for one in with_gpu if one.reloaded is None])
    return Finding(
        f"a container of {listing(dict.fromkeys(one.trial.engine for one, _ in lost))} lost the GPU "
        "when systemd reloaded its units",
        evidence=f"after systemctl daemon-reload, {_quoted(lost)}",
        remedy=Remedy(RepairAction.CONFIGURE, f"{SYMLINKS}, and again at each boot (a udev rule can do that)"),
        entities=unit(*dict.fromkeys(one.trial.unit for one, _ in lost)),
    )


@check(
    "smoke.cleanup",
    Severity.WARNING,
    title="nothing of an active test is left on the host",
    reads="what the engines said when containers and images of the test were removed",
    remedy=Remedy(RepairAction.CONFIGURE, "remove what bears the label io.gpunode.test"),
    needs=(asked("--smoke", lambda a: a.containers),),
)
def cleanup(host: HostFacts, context: Context) -> CheckOutcome:
    """A container or an image of an active test could not be removed. The next such test tries it again."""
    left = host.active.left if host.active else ()
    if not left:
        return None
    return Finding(
        "what an active test made could not be removed",
        evidence=listing(left, between="; "),
        remedy=Remedy(RepairAction.CONFIGURE, "remove the containers and images with the label io.gpunode.test"),
    )
