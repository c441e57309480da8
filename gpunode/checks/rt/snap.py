"""docker as a snap: confined, so that what is installed on the host does not reach it."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

REPLACE = Remedy(
    RepairAction.UPGRADE,
    "remove the snap and install the distribution's docker.io or Docker's docker-ce; or --runtime containerd",
)


@check(
    "rt.snap-docker",
    Severity.ERROR,
    title="docker is no snap, or one that has the nvidia runtime",
    reads="where dockerd's program is; docker /info: Runtimes",
    remedy=REPLACE,
    needs=(needs.gpu_for_containers, needs.own_toolkit),
)
def snap_docker(host: HostFacts, context: Context) -> CheckOutcome:
    """docker is a snap: its confined dockerd cannot run the host's nvidia-container-runtime, and setup refuses it.

    Ubuntu's newer ones have a toolkit of their own, which it may have configured by itself.
    """
    from gpunode.engines.docker.engine import AS_SNAP, Docker

    dockers = [engine for engine in host.runtimes if engine.name == Docker.name]
    if not dockers:
        return NotApplicable("docker is not installed")
    snap = next((engine for engine in dockers if engine.snap), None)
    if snap is None or context.handler in snap.handlers:
        return None
    if context.spec is not None and context.spec.runtimes is not None and Docker.name not in context.spec.runtimes:
        return NotApplicable("the spec does not include docker")
    if not snap.handlers and snap.active:
        return NotApplicable("docker is a snap, and its dockerd did not answer which runtimes it has")
    return Finding(
        "docker is a snap, whose containers get no GPU from the host's toolkit",
        # The planner's own words for it: by them this explains what setup refuses (agreement.py).
        evidence=f"{AS_SNAP}: {snap.config_path}; docker /info: Runtimes {listing(snap.handlers) or 'not known'}",
        remedy=REPLACE,
        entities=unit(snap.unit),
    )
