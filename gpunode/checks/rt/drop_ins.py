"""Drop-ins that an engine exits on, or never reads."""

from __future__ import annotations

from posixpath import dirname

from gpunode.advice import listing, named, typed
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.entities import place, unit
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "runtime")


@check(
    "rt.drop-ins",
    Severity.ERROR,
    title="no drop-in stops its engine, and none lies where its engine does not look",
    reads="k0s version and the version of each /etc/k0s/containerd.d/*.toml; /etc/crio/conf.d/99-nvidia.toml",
    remedy=Remedy(RepairAction.CONFIGURE, SETUP),
    needs=(needs.gpu, needs.engine),
)
def drop_ins(host: HostFacts, context: Context) -> CheckOutcome:
    """k0s 1.36 exits on a drop-in of version 2, or CRI-O does not read the one that nvidia-ctk wrote."""
    k0s = _k0s(host)
    return k0s if isinstance(k0s, Finding) else _crio(host) or k0s


def _k0s(host: HostFacts) -> CheckOutcome:
    """What an earlier gpunode wrote is of version 2."""
    from gpunode.engines.kubernetes.k0s import K0s, needs_version_3, old_drop_ins

    engine = host.runtime(K0s.name)
    old = old_drop_ins(host) if engine else ()
    if engine is None or not old:
        return None
    if engine.embedded_in is None:
        return NotApplicable(f"the version of k0s is not known: from 1.36 on it exits on {listing(old)}")
    if not needs_version_3(engine):
        return None
    # The one that runs is from before the upgrade, and would take a file of version 3 badly.
    stop = (f"drain the node, {typed('systemctl', 'stop', engine.unit)}; then ",) if engine.active else ()
    return Finding(
        f"k0s {engine.embedded_in} exits when it starts: {listing(old)} is in version 2",
        evidence="it merges version 3 only (unsupported containerd configuration version: expected 3, got 2)",
        remedy=Remedy(RepairAction.CONFIGURE, *stop, SETUP, " writes gpunode's own as version 3"),
        entities=(*map(place, old), *unit(engine.unit)),
    )


def _crio(host: HostFacts) -> Finding | None:
    """nvidia-ctk of 1.18.0 to 1.19.0 wrote it there."""
    from gpunode.engines.crio import MISPLACED, Crio, drop_in_directory

    engine = host.runtime(Crio.name)
    if engine is None or not host.file(MISPLACED).exists or drop_in_directory(engine) == dirname(MISPLACED):
        return None
    return Finding(
        f"{MISPLACED} has no effect: CRI-O does not read its directory",
        evidence=f"CRI-O reads {drop_in_directory(engine)}; nvidia-ctk of 1.18.0 to 1.19.0 wrote it there",
        remedy=Remedy(RepairAction.CONFIGURE, SETUP, f" writes it where CRI-O reads it; remove {named(MISPLACED)}"),
        severity=Severity.WARNING,
        entities=(place(MISPLACED), *unit(engine.unit)),
    )


@check(
    "rt.dropin-version",
    Severity.ERROR,
    title="containerd's drop-ins are in the version of the file that imports them",
    reads="version in containerd's configuration and in each file that it imports",
    remedy=Remedy(RepairAction.CONFIGURE, "write both in one version, or remove the import"),
    needs=(needs.gpu_for_containers, needs.engine),
)
def dropin_version(host: HostFacts, context: Context) -> CheckOutcome:
    """containerd ends at its next start, or passes over a file silently: its files are in two versions.

    The daemon that runs may be from before the file: then only its next start shows it. setup refuses such files in the
    same words, and what it refuses for them is explained by this.
    """
    from gpunode.engines.containerd.engine import Containerd
    from gpunode.engines.containerd.imports import gathered
    from gpunode.engines.containerd.mixed import refuse

    engine = host.runtime(Containerd.name)
    if engine is None or not engine.imports:
        return NotApplicable("no containerd that imports files")
    try:
        refuse(gathered(host, engine))
    except UnsupportedHost as error:
        return Finding(
            f"{engine.label} may not start again, or ignores a drop-in: two versions are mixed",
            evidence=f"{error.problem}; {error.evidence}",
            remedy=error.remedy,
            severity=Severity.WARNING if engine.handlers else None,
            entities=unit(engine.unit),
        )
    except ConfigFileError as error:
        return NotApplicable(f"its files cannot be read: {error.problem}")
    return None
