"""docker: daemon.json and the running daemon."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.engines import wanted
from gpunode.checks.rt.files import unread
from gpunode.errors import ConfigFileError
from gpunode.model.entities import place, unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "runtime")


def _docker(host: HostFacts) -> str | None:
    engine = host.runtime("docker")
    if engine is None:
        return "docker is not installed"
    return f"docker is rootless (rootless docker@{engine.user})" if engine.user else None


def _wanted(context: Context) -> bool:
    return context.spec is None or context.spec.runtimes is None or "docker" in context.spec.runtimes


@check(
    "rt.docker-file",
    Severity.ERROR,
    title="daemon.json is valid and has the nvidia runtime",
    reads="/etc/docker/daemon.json, or the file that dockerd was started with",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=(needs.gpu_for_containers, needs.own_toolkit, _docker),
)
def docker_file(host: HostFacts, context: Context) -> CheckOutcome:
    """docker's daemon.json is not valid, or has no nvidia runtime configured."""
    from gpunode.editing import json_text
    from gpunode.engines.docker.provenance import origins
    from gpunode.engines.provenance import BUILT_IN

    engine = host.runtime("docker")
    if engine is None or not _wanted(context):
        return NotApplicable("the spec does not include docker")
    file = host.file(engine.config_path)
    if file.unread is not None:
        return unread(file, engine)
    try:
        runtimes = json_text.load(file.path, file.text or "").get("runtimes")
    except ConfigFileError as fault:
        return Finding(
            f"{engine.config_path} is not valid: setup refuses it, and docker may not start again with it",
            evidence=fault.problem,
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"correct the file (python3 -m json.tool {named(engine.config_path)}), then ",
                SETUP,
            ),
            entities=(place(file.path), *unit(engine.unit)),
        )
    if any(one.setting == f"handler {context.handler}" and one.source != BUILT_IN for one in origins(file, engine)):
        return None
    names = listing(sorted(map(str, runtimes))) if isinstance(runtimes, Mapping) and runtimes else "no runtimes"
    return Finding(
        f"{engine.config_path} has no {context.handler} runtime configured",
        evidence=f"{engine.config_path} {f'has {names}' if file.exists else 'is absent'}",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP),
        steps=(engine_step(engine.label),),
        entities=(place(engine.config_path), *unit(engine.unit)),
    )


@check(
    "rt.docker-gpus",
    Severity.ERROR,
    title="docker run --gpus works: dockerd has started since the toolkit's hook was there",
    reads="the start of dockerd's process, and since when nvidia-container-runtime-hook is there",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl restart docker"),
    needs=(
        needs.gpu_for_containers,
        needs.own_toolkit,
    ),
)
def docker_gpus(host: HostFacts, context: Context) -> CheckOutcome:
    """docker run --gpus fails: dockerd started before nvidia-container-runtime-hook was there."""
    from gpunode.engines.docker.restart import misses_hook

    dockers = [engine for engine in wanted(host, context) if engine.name == "docker"]
    if not dockers:
        return NotApplicable("no docker runs here that the spec includes")
    if host.toolkit.hook_path is None:
        return NotApplicable("nvidia-container-runtime-hook is not installed (ctk.installed)")
    known = [e for e in dockers if e.started_at is not None] if host.toolkit.hook_since is not None else []
    if not known:
        return NotApplicable("this recording does not say when dockerd started, or since when the hook is there")
    late = [engine for engine in known if misses_hook(host, engine)]
    return _started_too_early(host, late[0]) if late else None


def _started_too_early(host: HostFacts, engine: RuntimeFacts) -> Finding:
    seconds = (host.toolkit.hook_since or 0) - (engine.started_at or 0)
    return Finding(
        f"docker run --gpus fails: {engine.label} started before nvidia-container-runtime-hook was there",
        evidence=f"process {engine.pid} started {seconds} s before {host.toolkit.hook_path} was installed, and dockerd "
        "looks for it only when it starts",
        remedy=_restart(host, engine),
        steps=() if engine.user else (engine_step(engine.label),),
        entities=unit(engine.unit),
    )


def _restart(host: HostFacts, engine: RuntimeFacts) -> Remedy:
    from gpunode.engines.docker.restart import lost

    if engine.user:
        words = f"as {named(engine.user)}: systemctl --user restart docker   (its containers stop without live-restore)"
        return Remedy(RepairAction.RESTART_SERVICE, words)
    stopped = lost(host, engine)
    if not stopped:
        return Remedy(RepairAction.RESTART_SERVICE, SETUP, " (it restarts dockerd; no container stops)")
    allowed = setup("--only", "runtime", "--allow-container-restart")
    return Remedy(
        RepairAction.RESTART_SERVICE, f"it stops {stopped}: systemctl restart {named(engine.unit)}, or ", allowed
    )


@check(
    "rt.docker-live",
    Severity.ERROR,
    title="the running dockerd has the nvidia runtime",
    reads="docker /info: Runtimes",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl reload docker"),
    needs=(needs.gpu_for_containers, needs.own_toolkit, _docker),
)
def docker_live(host: HostFacts, context: Context) -> CheckOutcome:
    """The running dockerd has no nvidia runtime configured, though its file may."""
    engine = host.runtime("docker")
    if engine is None or not _wanted(context):
        return NotApplicable("the spec does not include docker")
    if not engine.handlers:
        return NotApplicable("dockerd did not answer")
    if context.handler in engine.handlers:
        return None
    return Finding(
        f"the running dockerd has no {context.handler} runtime configured",
        evidence=f"docker /info: Runtimes {listing(engine.handlers)}",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE,
            SETUP,
            f" (manually: systemctl reload docker, once {named(engine.config_path)} has it; no container restarts)",
        ),
        steps=(engine_step(engine.label),),
        entities=unit(engine.unit),
    )
