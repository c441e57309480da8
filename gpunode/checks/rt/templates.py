"""Templates of containerd's configuration, which an admin or nvidia-ctk gave to a Kubernetes distribution."""

from __future__ import annotations

from gpunode.advice import listing, named
from gpunode.checks.registry import Context, check
from gpunode.checks.rt.handlers import ALL
from gpunode.model.entities import place, unit
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

BASE = '{{ template "base" . }}'


@check(
    "rt.k3s-template",
    Severity.ERROR,
    title="no template keeps k3s and rke2 from writing their containerd's configuration",
    reads="config.toml.tmpl and config-v3.toml.tmpl in the directory of that configuration",
    remedy=Remedy(RepairAction.CONFIGURE, f"begin the template with {BASE}, and keep only what that lacks"),
    needs=ALL,
)
def k3s_template(host: HostFacts, context: Context) -> CheckOutcome:
    """A whole configuration stands in a template's place: CNI, images and nvidia are missing at the next start."""
    from gpunode.engines.kubernetes.k3s import K3s, is_whole, template
    from gpunode.engines.registry import ENGINES

    engines = [one for one in host.runtimes if isinstance(ENGINES.get(one.name), K3s)]
    files = [(one, file) for one in engines if (file := template(host, one))]
    if not files:
        return NotApplicable("no Kubernetes distribution here has a template of its containerd's configuration")
    if unread := [file for _, file in files if file.unread]:
        return NotApplicable(f"{unread[0].path} was not read: {unread[0].unread}")
    # One that runs and has the handler is as its admin wants it.
    wrong = [(one, f) for one, f in files if is_whole(f) and not (one.active and context.handler in one.handlers)]
    if not wrong:
        return None
    engine, file = wrong[0]
    how = f"has no handler {context.handler}" if engine.active else "does not run"
    return Finding(
        f"{engine.name} {how}, and a whole file stands where a template of its containerd's configuration should",
        evidence=f"{file.path} has no {BASE}: what {engine.name} writes itself is left out"
        + (f"; handlers {listing(sorted(engine.handlers))}" if engine.active else f"; {engine.unit} is not active"),
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"move {named(file.path)} away, or begin it with {BASE}; then systemctl restart {named(engine.unit)}",
        ),
        entities=(*unit(engine.unit), place(file.path)),
    )
