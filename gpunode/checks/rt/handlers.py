"""The nvidia handler of engines that are not docker, and of what comes without a daemon."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.engines import BY_DRA, needs_none, wanted
from gpunode.errors import ConfigFileError
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "runtime")
ALL = (needs.gpu_for_containers, needs.own_toolkit, needs.engine)


def _lacks_handler(host: HostFacts, context: Context, engines: Sequence[RuntimeFacts], kind: str) -> CheckOutcome:
    """Of these running engines, whether each reports the handler."""
    running = [engine for engine in wanted(host, context) if engine in engines]
    if not running:
        return NotApplicable(f"no {kind} runs that should have {context.handler}")
    silent = [engine for engine in running if not engine.handlers]
    lacking = [engine for engine in running if engine not in silent and context.handler not in engine.handlers]
    if not lacking:
        return NotApplicable(f"{listing(e.label for e in silent)} did not report its handlers") if silent else None
    lacking = [engine for engine in lacking if not needs_none(host, context, engine)]
    if not lacking:
        return NotApplicable(BY_DRA)
    if all(by_default(context, engine) for engine in lacking):
        return NotApplicable(f"{listing(e.label for e in lacking)} lacks it and its default (rt.effective-default)")
    first = lacking[0]
    return Finding(
        f"the running {first.label} has no handler {context.handler}",
        evidence=f"{first.effective_source or 'CRI Status'}: handlers {listing(sorted(first.handlers))}",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP),
        steps=tuple(engine_step(engine.label) for engine in lacking),
        entities=unit(*(engine.unit for engine in lacking)),
    )


def by_default(context: Context, engine: RuntimeFacts) -> bool:
    """rt.effective-default finds the same: the handler should be this engine's default too."""
    default = context.spec is None or context.spec.runtime.default
    return default and engine.effective_default is not None


@check(
    "rt.crio",
    Severity.ERROR,
    title="the running CRI-O has the nvidia handler",
    reads="crio status config",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=ALL,
)
def crio(host: HostFacts, context: Context) -> CheckOutcome:
    """CRI-O has no handler nvidia: pods that ask for it are not started."""
    from gpunode.engines.crio import Crio

    return _lacks_handler(host, context, [e for e in host.runtimes if e.name == Crio.name], "CRI-O")


@check(
    "rt.k3s",
    Severity.ERROR,
    title="the containerd of a Kubernetes distribution has the nvidia handler",
    reads="CRI Status of the containerd that k3s, rke2, k0s or microk8s runs",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=ALL,
)
def k3s(host: HostFacts, context: Context) -> CheckOutcome:
    """The distribution's containerd has no handler nvidia: k3s and rke2 look for the toolkit when they start."""
    from gpunode.engines.registry import ENGINES

    embedded = [e for e in host.runtimes if e.name in ENGINES and ENGINES[e.name].embedded]
    return _lacks_handler(host, context, embedded, "Kubernetes distribution")


@check(
    "rt.podman",
    Severity.WARNING,
    title="podman can give containers a GPU",
    reads="CDI specifications in /etc/cdi and /var/run/cdi; podman's handlers",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit", "--cdi")),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.engine, needs.toolkit),
)
def podman(host: HostFacts, context: Context) -> CheckOutcome:
    """podman is the only engine, and neither a CDI specification nor a runtime gives its containers a GPU.

    Next to another engine it may be there for something else, as on every RHEL.
    """
    from gpunode.engines.podman import CDI, Podman

    engine = host.runtime(Podman.name)
    if engine is None or any(one.name != Podman.name for one in host.runtimes):
        return NotApplicable("podman is not the engine of this host")
    if context.handler in engine.handlers or any(d.startswith("nvidia.com/") for d in host.toolkit.cdi_devices):
        return None
    unread = [path for path in host.toolkit.cdi_specs if host.file(path).unread]
    if unread:
        return NotApplicable(f"{unread[0]} was not read: {host.file(unread[0]).unread}")
    return Finding(
        "podman's containers get no GPU: there is no CDI specification",
        evidence=f"/etc/cdi and /var/run/cdi name no nvidia.com/gpu; `{CDI}` needs one",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit", "--cdi")),
    )


@check(
    "rt.runtime-type",
    Severity.ERROR,
    title="containerd's nvidia handler names its shim",
    reads="runtime_type of the handler in containerd's configuration and imports",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=ALL,
)
def runtime_type(host: HostFacts, context: Context) -> CheckOutcome:
    """The handler has no runtime_type, as nvidia-ctk 1.19.1 wrote it: no pod starts with it."""
    from gpunode.engines.containerd.cri_section import containerd_section, section
    from gpunode.engines.containerd.engine import Containerd
    from gpunode.engines.containerd.imports import gathered
    from gpunode.engines.containerd.live import effective

    engine = host.runtime(Containerd.name)
    if engine is None:
        return NotApplicable("no containerd is installed")
    try:
        runtimes = section(containerd_section(effective(engine, gathered(host, engine))), "runtimes")
    except ConfigFileError as fault:
        return NotApplicable(f"its files cannot be read: {fault.problem}")
    if context.handler not in runtimes:
        return NotApplicable(f"no handler {context.handler} in its files (rt.containerd-file)")
    if section(runtimes, context.handler).get("runtime_type"):
        return None
    return Finding(
        f"containerd's handler {context.handler} has no runtime_type: no pod starts with it",
        evidence=f"{listing((engine.config_path, *engine.imports))}: runtimes.{context.handler} has no runtime_type "
        "(container.Runtime.Name must be set)",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP, " writes it"),
        steps=(engine_step(engine.label),),
        entities=unit(engine.unit),
    )
