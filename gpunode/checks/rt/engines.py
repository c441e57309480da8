"""Questions that are the same for every engine."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import listing, named
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.files import default_in_file, program_in_file
from gpunode.checks.rt.low_level import wrong_low_level
from gpunode.checks.rt.other_name import keeps, runs_nvidias
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubernetes import GPU_DRA_DRIVER
from gpunode.model.plan import engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "runtime")
BY_DRA = "pods get their GPUs from NVIDIA's DRA driver, which names no runtime"
BY_CLASS = ", or name it in a RuntimeClass and say so with --no-default"


def wanted(host: HostFacts, context: Context) -> tuple[RuntimeFacts, ...]:
    """The running engines that should have the nvidia runtime; a containerd without CRI serves docker and has none."""
    from gpunode.engines.containerd.dockers_own import is_dockers_own

    names = context.spec.runtimes if context.spec else None
    # An engine without a daemon (podman) is served by CDI; it is configured only where the spec names it.
    # A rootless Docker is its user's, and is configured only where the spec names it, too.
    engines = (e for e in host.runtimes if (bool(e.unit) and not e.user if names is None else _named(host, e, names)))
    asked = (e for e in engines if e.active and (host.kubernetes.kubelet or e.cri_error is None))
    return tuple(e for e in asked if not is_dockers_own(host, e))


def _named(host: HostFacts, engine: RuntimeFacts, names: tuple[str, ...]) -> bool:
    """By its kind or its label; a kind is a user's own one only where the host has no other."""
    by_kind = engine.name in names and (not engine.user or all(e.user for e in host.runtimes if e.name == engine.name))
    return by_kind or engine.label in names


@check(
    "rt.present",
    Severity.ERROR,
    title="the wanted engines are installed and running",
    reads="systemd units and sockets of docker and containerd",
    remedy=Remedy(RepairAction.UPGRADE, "install and start the engine"),
    needs=(needs.gpu_for_containers,),
)
def present(host: HostFacts, context: Context) -> CheckOutcome:
    """A container engine is missing or does not run."""
    names = context.spec.runtimes if context.spec else None
    absent = [n for n in names or () if not any(n in (e.name, e.label) for e in host.runtimes)]
    if absent:
        return Finding(
            f"{listing(absent)} is wanted and not installed",
            evidence=f"engines on this host: {listing(e.name for e in host.runtimes) or 'none'}",
            remedy=Remedy(RepairAction.UPGRADE, f"install {named(absent[0])} from your distribution, then ", SETUP),
        )
    # A rootless Docker is its user's.
    engines = [e for e in host.runtimes if e.user is None and (names is None or _named(host, e, names))]
    if not engines:
        return NotApplicable("no container engine is installed, and none is wanted by name")
    if host.init == "chroot":
        return NotApplicable("an image that is being built runs no engine")
    stopped = [e for e in engines if not e.active and not _switched_off(host, e, names)]
    if not stopped:
        return None if any(e.active for e in engines) else NotApplicable("every engine here is disabled")
    name = named(stopped[0].unit)
    return Finding(
        f"{listing(e.name for e in stopped)} does not run",
        evidence=f"systemctl is-active {stopped[0].unit} does not print active",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE,
            f"systemctl status {name}; journalctl -u {name} -b; systemctl reset-failed {name} before the next start",
        ),
        entities=unit(*(e.unit for e in stopped)),
    )


def _switched_off(host: HostFacts, engine: RuntimeFacts, names: tuple[str, ...] | None) -> bool:
    """Disabled by its admin and not asked for by name: a node that runs containerd alone often has an idle docker."""
    unit = host.services.get(engine.unit)
    return names is None and unit is not None and unit.enabled in ("disabled", "masked") and unit.active == "inactive"


def needs_none(host: HostFacts, context: Context, engine: RuntimeFacts) -> bool:
    """Its pods get their GPUs without the handler: the spec says so or, where it does not say, what is there."""
    from gpunode.engines.kubernetes.for_pods import may_run_pods

    plugins = host.kubernetes.device_plugins
    seen = context.mode is None and plugins is not None and GPU_DRA_DRIVER in plugins.dra and not plugins.here
    return (context.mode == "dra" or seen) and may_run_pods(engine)


@check(
    "rt.effective-default",
    Severity.ERROR,
    title="nvidia is the default runtime of the running engines",
    reads="docker /info; containerd's CRI Status",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.engine),
)
def effective_default(host: HostFacts, context: Context) -> CheckOutcome:
    """The running daemon's default runtime is not nvidia, whatever its file says."""
    want = context.spec.runtime if context.spec else RuntimeSpec()
    if not want.default:
        return NotApplicable(f"{want.handler} is configured not to be the default: pods name it with a RuntimeClass")
    engines = wanted(host, context)
    if not engines:
        return NotApplicable(f"no engine is running that should have {want.handler}")
    engines = tuple(e for e in engines if not needs_none(host, context, e))
    if not engines:
        return NotApplicable(f"{BY_DRA}: any default will do")
    asked = [e for e in engines if e.effective_default is not None]
    wrong = [e for e in asked if e.effective_default != want.handler]
    if wrong:
        return _together([_still_runs_with(host, context, engine, want) for engine in wrong])
    if len(asked) < len(engines):
        unknown = [e.name for e in engines if e.effective_default is None]
        return NotApplicable(f"{listing(unknown)} did not report its default")
    return None


def _together(found: Sequence[Finding]) -> Finding:
    """One engine's finding is as it is; of several, setup may mend one and refuse another."""
    if len(found) == 1:
        return found[0]
    return Finding(
        "; ".join(one.summary for one in found),
        evidence="; ".join(one.evidence for one in found),
        remedy=Remedy(RepairAction.CONFIGURE, SETUP),
        severity=None if any(one.severity is None for one in found) else Severity.WARNING,
        steps=tuple(step for one in found for step in one.steps),
        entities=tuple(dict.fromkeys(entity for one in found for entity in one.entities)),
    )


def _still_runs_with(host: HostFacts, context: Context, engine: RuntimeFacts, want: RuntimeSpec) -> Finding:
    written = default_in_file(host, engine)
    running = f"{engine.effective_source}: default {engine.effective_default}"
    if written is not None and written.value == want.handler:
        return Finding(
            f"{engine.name} still runs with {engine.effective_default} as its default: "
            f"the file says {want.handler}, the daemon was not restarted",
            evidence=f"{running} · {written}",
            remedy=Remedy(RepairAction.RESTART_SERVICE, SETUP),
            steps=(engine_step(engine.label),),
            entities=unit(engine.unit),
        )
    # With no spec, a node whose pods name a RuntimeClass may be configured as its owner wants it.
    by_class = context.spec is None and want.handler in engine.handlers
    return Finding(
        f"{engine.name} runs with {engine.effective_default} as its default",
        evidence=f"{runs_nvidias(engine)}{running}{f' · {written}' if written else ''}",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP, BY_CLASS if by_class else keeps(engine)),
        severity=Severity.WARNING if by_class or engine.nvidia_by_default else None,
        steps=(engine_step(engine.label),),
        entities=unit(engine.unit),
    )


@check(
    "rt.handler-binary",
    Severity.ERROR,
    title="the nvidia handler's program exists, is NVIDIA's, and finds CRI-O's own runtime",
    reads="nvidia-container-runtime in PATH; the engines' handlers, and the programs that their files name for them; "
    f"runtimes in {TOOLKIT_CONFIG}",
    remedy=Remedy(RepairAction.UPGRADE, setup("--only", "toolkit")),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.engine),
)
def handler_binary(host: HostFacts, context: Context) -> CheckOutcome:
    """An engine is configured to start containers with a program that does not exist, or that gives them no GPU."""
    name = context.handler
    users = [e for e in host.runtimes if name in e.handlers or e.effective_default == name]
    if not users:
        return NotApplicable(f"no engine has a runtime called {name}")
    if host.toolkit.runtime_path and host.toolkit.runtime_executable:
        judges = (_wrong_program, wrong_low_level)
        wrong = [found for engine in users for judge in judges if (found := judge(host, context, engine))]
        return _together(wrong) if wrong else None
    return Finding(
        f"{listing(e.name for e in users)} would start nvidia-container-runtime, which cannot be run",
        evidence=f"{host.toolkit.runtime_path or 'nvidia-container-runtime'} is "
        f"{'not executable' if host.toolkit.runtime_path else 'not in PATH'}",
        remedy=Remedy(
            RepairAction.UPGRADE, setup("--only", "toolkit"), "; every new container on this engine fails until then"
        ),
    )


def _wrong_program(host: HostFacts, context: Context, engine: RuntimeFacts) -> Finding | None:
    from gpunode.engines.crio import Crio
    from gpunode.engines.docker.engine import Docker
    from gpunode.engines.handler import is_low_level
    from gpunode.engines.podman import Podman

    named_there = program_in_file(host, engine, context.handler)
    if named_there is None or needs_none(host, context, engine):
        return None
    programs = named_there.value.split(", ")  # podman takes the first that is there
    if all(program in engine.missing_binaries for program in programs):
        what = f"{listing(programs)}, which is not on this host's disk"
    elif engine.name in (Crio.name, Podman.name):  # with OCI hooks and CDI a low-level runtime gives GPUs, too
        return None
    elif is_low_level(named_there.value) or (not named_there.value and engine.name != Docker.name):
        what = f"{named_there.value or 'runc'}, which gives it no GPU"  # dockerd does not start with no program
    else:
        return None
    return Finding(
        f"{engine.label} starts a container of {context.handler} with {what}",
        evidence=f"{named_there.where}: {named_there.setting} names {named_there.value or 'no program'}",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP),
        steps=(engine_step(engine.label),),
        entities=unit(engine.unit),
    )


@check(
    "rt.daemon-restart-safe",
    Severity.WARNING,
    title="docker's containers keep running when the daemon restarts",
    reads="docker /info: LiveRestoreEnabled, ContainersRunning",
    remedy=Remedy(
        RepairAction.CONFIGURE, '"live-restore": true in /etc/docker/daemon.json, then systemctl reload docker'
    ),
    needs=(needs.gpu_for_containers, needs.engine),
)
def daemon_restart_safe(host: HostFacts, context: Context) -> CheckOutcome:
    """A restart of dockerd, for instance by an upgrade, stops the running containers."""
    engine = next((one for one in host.runtimes if one.live_restore is not None), None)
    if engine is None:
        return NotApplicable("docker is not installed, or did not answer")
    if engine.live_restore or not engine.containers_running:
        return None
    return Finding(
        f"{engine.containers_running} containers stop when {engine.name} is restarted",
        evidence=f"{engine.name} /info: LiveRestoreEnabled false, ContainersRunning {engine.containers_running}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f'add "live-restore": true to {named(engine.config_path)} and systemctl reload '
            f"{named(engine.name)} (not with swarm)",
        ),
    )


@check(
    "rt.engine-eol",
    Severity.WARNING,
    title="the engines get fixes from their projects",
    reads="the engines' versions against catalog/engine_ends.yaml, and today's date",
    remedy=Remedy(RepairAction.UPGRADE, "upgrade the engine to a release that gets fixes"),
    needs=(needs.gpu_for_containers, needs.engine),
)
def engine_eol(host: HostFacts, context: Context) -> CheckOutcome:
    """An engine's release has ended: nobody fixes its faults any more."""
    from gpunode.catalog.engine_ends import end_of

    if context.today is None:
        return NotApplicable("today's date is not known")
    # What a Kubernetes distribution embeds ends with that; a Linux distribution maintains its own package.
    engines = [e for e in host.runtimes if e.embedded_in is None and e.name not in host.packages.installed]
    ends = [(engine, end) for engine in engines if (end := end_of(engine.name, engine.version))]
    over = [(engine, end) for engine, end in ends if end.is_over(context.today)]
    if over:
        engine, end = over[0]
        return Finding(
            f"{engine.label} {engine.version} gets no fixes since {end.end}",
            evidence=f"release {'.'.join(map(str, end.release))} of {engine.name} ended {end.end} ({end.source})",
            remedy=Remedy(RepairAction.UPGRADE, f"upgrade {engine.name} to a release that gets fixes"),
        )
    return None if ends else NotApplicable("of no engine here is it known until when its project fixes it")
