"""containerd: its files, its CRI plugin, and the running daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.advice import listing, named
from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.engines import BY_DRA, needs_none
from gpunode.checks.rt.files import default_in_file, unread
from gpunode.checks.rt.other_name import keeps, runs_nvidias
from gpunode.errors import ConfigFileError
from gpunode.model.entities import place, unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.kubelet_program import kubelet_version
from gpunode.model.plan import engine_step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction, setup

if TYPE_CHECKING:
    from gpunode.engines.containerd.imports import Files

SETUP = setup("--only", "runtime")


def _containerd(host: HostFacts) -> str | None:
    return None if host.runtime("containerd") else "containerd is not installed"


def _serves_pods(host: HostFacts) -> str | None:
    """docker's own containerd has CRI switched off on purpose, and is not configured."""
    from gpunode.engines.containerd.dockers_own import kubelet_has_another

    engine = host.runtime("containerd")
    if engine is not None and engine.cri_error is not None and kubelet_has_another(host, engine):
        return "CRI is off and no kubelet asks it: this containerd serves docker"
    return None


def _wanted(context: Context) -> bool:
    return context.spec is None or context.spec.runtimes is None or "containerd" in context.spec.runtimes


def _overriding_table(files: Files) -> tuple[str, int] | None:
    """Path and line of a default_runtime table that is in use; an empty one has no effect."""
    from gpunode.engines.containerd.live import tables
    from gpunode.engines.provenance import at, line_of_keys

    for path in files.order():
        for keys in (("plugins", plugin, "containerd", "default_runtime") for plugin in tables(files, path)):
            if at(files.plain(path), (*keys, "runtime_type")):
                return path, line_of_keys(files.text(path), keys)
    return None


def _disabled(host: HostFacts, engine: RuntimeFacts) -> tuple[str, int, str] | None:
    """Path, line and names of the first file that switches CRI off. One that does not parse is rt.containerd-file's."""
    from gpunode.engines.containerd import cri_section
    from gpunode.engines.containerd.imports import gathered
    from gpunode.engines.provenance import line_of_keys

    try:
        files = gathered(host, engine)
        order = files.order()
    except ConfigFileError:
        return None
    found = ((path, cri_section.cri_disabled(files.plain(path))) for path in order)
    path, names = next(((path, names) for path, names in found if names), ("", ()))
    return (path, line_of_keys(files.text(path), ("disabled_plugins",)), listing(names)) if names else None


ALL = (needs.gpu_for_containers, needs.own_toolkit, _containerd, _serves_pods)


@check(
    "rt.containerd-file",
    Severity.ERROR,
    title="containerd's files have the nvidia handler",
    reads="/etc/containerd/config.toml, or the file that containerd was started with, and its imports",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=ALL,
)
def containerd_file(host: HostFacts, context: Context) -> CheckOutcome:
    """containerd's files have no handler nvidia, or an old default_runtime table takes precedence."""
    engine = host.runtime("containerd")
    if engine is None or not _wanted(context):
        return NotApplicable("the spec does not include containerd")
    for file in map(host.file, (engine.config_path, *engine.imports)):
        if file.unread is not None:
            return unread(file, engine)
    try:
        found = _files_verdict(host, engine, context.handler)
        # What is missing has a step that adds it; a table that takes precedence has none.
        return NotApplicable(BY_DRA) if found and found.steps and needs_none(host, context, engine) else found
    except ConfigFileError as fault:
        words, about = "containerd's files cannot be read", unit(engine.unit)
        return Finding(words, evidence=fault.problem, remedy=fault.remedy, entities=about)


def _files_verdict(host: HostFacts, engine: RuntimeFacts, handler: str) -> Finding | None:
    """Raises ConfigFileError for a file that does not parse."""
    from gpunode.engines.containerd.cri_section import containerd_section, section
    from gpunode.engines.containerd.imports import gathered
    from gpunode.engines.containerd.live import effective

    files = gathered(host, engine)
    legacy = _overriding_table(files)
    ignored = at_least(engine.version, first_with("containerd", "no-default-runtime-table"))
    if legacy and not ignored and default_in_file(host, engine):
        path, line = legacy
        return Finding(
            "an old default_runtime table takes precedence over default_runtime_name",
            evidence=f"{path}:{line} containerd.default_runtime; containerd {engine.version}",
            remedy=Remedy(RepairAction.CONFIGURE, f"remove that table from {named(path)}, then ", SETUP),
            entities=(place(path, line), *unit(engine.unit)),
        )
    if handler in section(containerd_section(effective(engine, files)), "runtimes"):
        return None
    return Finding(
        f"containerd's files have no handler {handler}",
        evidence=f"{runs_nvidias(engine)}no runtimes.{handler} in {listing((engine.config_path, *engine.imports))}"
        f"{'' if host.file(engine.config_path).exists else ' (absent)'}",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP, keeps(engine)),
        severity=Severity.WARNING if engine.nvidia_by_default else None,
        steps=(engine_step(engine.label),),
        entities=(place(engine.config_path), *unit(engine.unit)),
    )


@check(
    "rt.containerd-live",
    Severity.ERROR,
    title="the running containerd has the nvidia handler",
    reads="containerd's CRI Status",
    remedy=Remedy(RepairAction.RESTART_SERVICE, SETUP, " (manually: systemctl restart containerd; pods keep running)"),
    needs=ALL,
)
def containerd_live(host: HostFacts, context: Context) -> CheckOutcome:
    """The running containerd has no handler nvidia, though its files may."""
    engine = host.runtime("containerd")
    if engine is None or not _wanted(context):
        return NotApplicable("the spec does not include containerd")
    if not engine.handlers:
        return NotApplicable("containerd did not report its handlers")
    if "dump" in engine.effective_source:
        return NotApplicable(f"only {engine.effective_source} answered: that shows the files, not the daemon")
    if context.handler in engine.handlers:
        return None
    if needs_none(host, context, engine):
        return NotApplicable(BY_DRA)
    return Finding(
        f"the running containerd has no handler {context.handler}",
        evidence=f"{runs_nvidias(engine)}{engine.effective_source or 'CRI Status'}: "
        f"handlers {listing(sorted(engine.handlers))}",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE,
            SETUP,
            " (manually: systemctl restart containerd, once its files have it; pods keep running)",
        ),
        severity=Severity.WARNING if engine.nvidia_by_default else None,
        steps=(engine_step(engine.label),),
        entities=unit(engine.unit),
    )


@check(
    "rt.cri-disabled",
    Severity.ERROR,
    title="containerd's CRI answers the kubelet",
    reads="CRI Status on containerd's socket; disabled_plugins in its files",
    remedy=Remedy(RepairAction.CONFIGURE, "remove cri from disabled_plugins, then systemctl restart containerd"),
    needs=(_containerd,),
)
def cri_disabled(host: HostFacts, context: Context) -> CheckOutcome:
    """containerd runs and its CRI does not answer: the kubelet cannot start pods."""
    from gpunode.engines.containerd.dockers_own import kubelet_has_another

    engine = host.runtime("containerd")
    if engine is None or not host.kubernetes.kubelet:
        return NotApplicable("no kubelet on this host")
    if own := next((one for one in host.runtimes if one.embedded_in), None):
        return NotApplicable(f"the kubelet uses the containerd of {own.name}")
    if kubelet_has_another(host, engine):
        return NotApplicable("the kubelet's pods are another engine's")
    if not engine.active:
        return NotApplicable("containerd does not run (rt.present)")
    off = _disabled(host, engine)
    if engine.cri_error is None and not off:
        return None
    if off:
        path, line, names = off
        return Finding(
            "containerd's CRI is switched off",
            evidence=f"{path}:{line} disabled_plugins has {names}",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                f"remove it from that list in {named(path)}, then systemctl restart {named(engine.unit)}",
            ),
            entities=(place(path, line), *unit(engine.unit)),
        )
    return Finding(
        "containerd runs, its CRI does not answer",
        evidence=f"CRI Status: {engine.cri_error}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"journalctl -u {named(engine.unit)} -b | grep -i cri names the line of the config that it refuses",
        ),
        steps=(engine_step(engine.label),),
        entities=unit(engine.unit),
    )


@check(
    "rt.cgroup-driver",
    Severity.ERROR,
    title="kubelet and every handler use one cgroup driver",
    reads="SystemdCgroup of each handler; cgroupDriver of the kubelet",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=(needs.gpu_for_containers, _containerd, _serves_pods),
)
def cgroup_driver(host: HostFacts, context: Context) -> CheckOutcome:
    """The nvidia handler and runc, or the kubelet, put pods into different cgroups."""
    engine = host.runtime("containerd")
    name = context.handler
    ours = engine.systemd_cgroup.get(name) if engine else None
    if engine is None or ours is None:
        return NotApplicable(f"the SystemdCgroup of the {name} handler is not known")
    if engine.effective_default == name:
        # It has the settings of the default before it, of which only the value is left; any other handler has them.
        others = {handler: value for handler, value in engine.systemd_cgroup.items() if handler != name}
        if "runc" in others and ours not in others.values():
            return _unlike(name, ours, "runc", by_setup=False)
    else:
        base = engine.effective_default if engine.effective_default in engine.systemd_cgroup else "runc"
        theirs = engine.systemd_cgroup.get(base or "runc")
        if theirs is not None and theirs != ours:
            return _unlike(name, ours, base or "runc", by_setup=True)
    return _held_against_kubelet(host, engine, name, ours)


def _held_against_kubelet(host: HostFacts, engine: RuntimeFacts, name: str, ours: bool) -> CheckOutcome:
    from gpunode.engines.containerd.cgroup_driver import kubelet_asks_containerd
    from gpunode.engines.docker import dockershim

    if dockershim.runs_pods(host):
        return NotApplicable("this kubelet starts its pods with docker")
    kubelet = host.kubernetes.kubelet_cgroup_driver
    if kubelet is None or kubelet == ("systemd" if ours else "cgroupfs"):
        return None
    asks = kubelet_asks_containerd(host, engine)
    if asks is None:
        return NotApplicable(
            f"with containerd {engine.version or 'of unknown version'} a kubelet from 1.31 on ignores its own cgroup "
            "driver; its version is not known"
        )
    if asks:
        return _kubelets_word_ignored(host, engine, kubelet, ours)
    return Finding(
        f"the kubelet uses {kubelet}, the {name} handler does not",
        evidence=f"kubelet cgroupDriver {kubelet}; containerd SystemdCgroup {str(ours).lower()}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"set SystemdCgroup of runc and {named(name)} to what the kubelet uses, then systemctl restart containerd",
        ),
    )


def _kubelets_word_ignored(host: HostFacts, engine: RuntimeFacts, kubelet: str, ours: bool) -> Finding | None:
    """The pods of a kubelet that asks containerd are of one driver: only that it is cgroupfs may surprise its admin."""
    if ours or kubelet != "systemd":
        return None
    default = engine.effective_default or "runc"
    return Finding(
        "the kubelet is configured for systemd, and takes cgroupfs from containerd",
        evidence=f"kubelet {kubelet_version(host)} asks containerd {engine.version}; its default "
        f"{default} has SystemdCgroup false; kubelet cgroupDriver systemd is ignored",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "drain the node, set SystemdCgroup = true of every handler, then restart containerd and the kubelet",
        ),
        severity=Severity.WARNING,
    )


def _unlike(name: str, ours: bool, base: str, *, by_setup: bool) -> Finding:
    """`by_setup`: setup would copy the other's setting; of a default it does not change what is written."""
    by_hand = f"set SystemdCgroup of {named(name)} to {base}'s, then systemctl restart containerd"
    return Finding(
        f"the {name} handler and {base} use different cgroup drivers",
        evidence=f"SystemdCgroup: {base} {str(not ours).lower()}, {name} {str(ours).lower()}",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP, f" copies {base}'s setting")
        if by_setup
        else Remedy(RepairAction.CONFIGURE, by_hand),
    )


@check(
    "rt.runc-version",
    Severity.WARNING,
    title="containerd is new enough for the spec, and its runc has no known way out of a container",
    reads="containerd --version; runc --version against catalog/engine_ends.yaml",
    remedy=Remedy(RepairAction.UPGRADE, "upgrade containerd and runc"),
    needs=(needs.gpu_for_containers, _containerd),
)
def runc_version(host: HostFacts, context: Context) -> CheckOutcome:
    """CDI is wanted and this containerd does not support it, or its runc has a known way out of a container."""
    from gpunode.catalog.cdi_versions import lacks_cdi
    from gpunode.catalog.engine_ends import runc_floor

    engine = host.runtime("containerd")
    assert engine is not None, "_containerd says so"
    if context.spec and context.spec.runtime.cdi and lacks_cdi(engine):
        return Finding(
            f"containerd {engine.version} does not support CDI",
            evidence="containerd reads CDI specifications from 1.7 on",
            remedy=Remedy(RepairAction.UPGRADE, "upgrade containerd to 1.7 or later, or leave --cdi out"),
        )
    if engine.runc_version is None:
        return NotApplicable("the version of its runc is not known: runc --version was not run, or did not answer")
    floor = runc_floor(engine.runc_version)
    if floor is None:
        return None
    if "runc" in host.packages.installed:
        return NotApplicable(f"runc {engine.runc_version} is the distribution's, which mends it under its own version")
    return Finding(
        f"runc {engine.runc_version} has {floor.cve}: a container can write to the host",
        evidence=f"runc --version prints {engine.runc_version}; fixed in {floor.fixed}",
        remedy=Remedy(RepairAction.UPGRADE, f"upgrade the package or binary that brought it, to {floor.fixed}"),
    )
