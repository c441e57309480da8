"""The order of everything: what an engineer would type, top to bottom."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.spec import PARTS, Spec
from gpunode.planner.before import before_step, repair_step
from gpunode.planner.driver import DriverChoice
from gpunode.planner.install import driver_choice, fabric_step, hold_step, install_step
from gpunode.planner.kernel import build_step, headers_step, load_step, reboot_reason, rivals_step, services_step
from gpunode.planner.repository import Source, cuda_source, tools_step
from gpunode.planner.runtime import runtime_steps
from gpunode.planner.site import Site, survey
from gpunode.planner.summary import driver_lines, host_line
from gpunode.planner.toolkit import toolkit_steps

Outcome = Step | Kept

# Packages bring their own config, units and modules: what follows them is planned again from fresh facts.
CHANGES_THE_GROUND = ("packages.repair", "driver.install", "driver.build", "driver.fabric", "toolkit.install")


def make_plan(host: HostFacts, spec: Spec, catalog: Catalog) -> Plan:
    """The difference between this host and what is wanted.

    Raises UnsupportedHost when it cannot be reached from here, UsageError for a request that contradicts itself, and
    ConfigFileError for an engine's config that cannot be edited safely. Nothing on the host was touched.
    """
    driver = "driver" in spec.only and spec.driver.kind != "none"
    toolkit = "toolkit" in spec.only and spec.toolkit.kind != "none"
    outcomes: list[Outcome] = []
    choice: DriverChoice | None = None
    reboot: str | None = None
    if driver or toolkit:
        site = survey(host, spec, catalog)
        if driver:
            refuse_no_gpu(host, spec)
            choice = driver_choice(site) if site.cards else None
        parts = _driver_outcomes(site, choice) if choice else []
        tools = toolkit_steps(site) if toolkit else ()
        outcomes += [*_prepare(site, [*parts, *tools]), *parts, *tools]
        reboot = reboot_reason(site, choice) if choice else None
    if "runtime" in spec.only and spec.runtimes != ():
        steps, kept = runtime_steps(host, spec)
        outcomes += [*steps, *kept]
    done = tuple(o for o in outcomes if isinstance(o, Step)) or _close_journal(host, spec)
    return Plan(
        target=host.target,
        spec=spec,
        facts_sha256=host.stream_sha256,
        summary=(host_line(host, catalog), *driver_lines(choice, catalog)),
        steps=done,
        kept=tuple(o for o in outcomes if isinstance(o, Kept)),
        reboot=reboot,
        replan_after=any(step.id in CHANGES_THE_GROUND for step in done),
    )


def refuse_no_gpu(host: HostFacts, spec: Spec) -> None:
    """Raises UnsupportedHost on a host without a card, unless an image is being baked (--allow-no-gpu)."""
    if host.gpus or spec.allow_no_gpu:
        return
    seen = ", ".join(f"{d.address} [{d.class_code}] {d.vendor}:{d.device}" for d in host.pci[:4])
    raise UnsupportedHost(
        f"{host.hostname}: no NVIDIA GPU on the PCI bus",
        evidence=f"of NVIDIA's PCI functions with class 0300 or 0302 there is none; others: {seen or 'none'}",
        remedy="check the slot and the virtual machine's passthrough; --allow-no-gpu bakes an image without a card",
    )


def _close_journal(host: HostFacts, spec: Spec) -> tuple[Step, ...]:
    """With nothing else to do, a step that a killed run left open is right by now, and its backups are history.

    Left open, a failure of the same step months later would bring those old bytes back. A plan with steps closes them
    on its way (apply/execute.py); only a whole spec can tell that nothing is left to do.
    """
    if not host.journal.open_steps or spec.only != PARTS:
        return ()
    names = ", ".join(host.journal.open_steps)
    why = "a cut-off run never wrote their end; the facts say that nothing of them is left to do"
    return (Step("journal.close", f"close in gpunode's own journal: {names}", why, ()),)


def _prepare(site: Site, planned: Sequence[Outcome]) -> list[Outcome]:
    """What must stand before the first repository is touched; nothing when no package is going to change."""
    steps = [o for o in planned if isinstance(o, Step)]
    ids = {step.id for step in steps}
    first: list[Step | None] = [repair_step(site)]
    if any(i.startswith("repo.") for i in ids):
        first.append(tools_step(site))
    if "driver.install" in ids:
        first.append(before_step(site))
    return [step for step in first if step is not None]


def _driver_outcomes(site: Site, choice: DriverChoice) -> list[Outcome]:
    found: list[Outcome | None] = []
    dkms = choice.source == "cuda" or not (site.distro.archive and site.distro.archive.signed)
    if choice.kept:
        found.append(Kept("driver.install", f"driver {choice.version} with {choice.flavour} kernel modules stays"))
        found.append(headers_step(site) if dkms and choice.packages else None)
        found += [build_step(site, choice), fabric_step(site, choice), hold_step(site, choice)]
    else:
        source: Source | None = cuda_source(site) if choice.source == "cuda" else None
        found += [source.step or source.kept] if source else []
        found.append(headers_step(site) if dkms else None)
        found.append(install_step(site, choice, source))
    now = reboot_reason(site, choice) is None
    found += [rivals_step(site), load_step(site, choice, now=now), services_step(site, now=now)]
    return [outcome for outcome in found if outcome is not None]
