"""What the journal keeps about a host as it was before a plan, for a later undo."""

from __future__ import annotations

from gpunode.model.action import Run
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.plan import Plan


def before_values(host: HostFacts, plan: Plan) -> dict[str, object]:
    """What undo will want to know about the host before this plan.

    packages: every package that a command of the plan installs or removes -> its version now, None when absent.
    files: every file that a command writes itself -> whether it is there. services: every unit that is enabled or
    masked -> [UnitFileState, ActiveState]. A plan that is an undo names the runs that it undoes; nothing undoes that.
    """
    if plan.undo:
        return {"undo": {"runs": plan.undo.runs, "packages": plan.undo.packages, "pending": plan.undo.pending}}
    runs = [action for step in plan.steps for action in step.actions if isinstance(action, Run)]
    names = {name for run in runs for name in run.packages}
    installed = host.packages.installed
    return {
        "packages": {name: installed[name].version if name in installed else None for name in sorted(names)},
        "held": sorted(host.packages.held),
        "default_runtimes": {engine.label: engine.effective_default for engine in host.runtimes},
        "handler": plan.spec.runtime.handler,
        "services": {unit: _state(host, unit) for run in runs for unit in units(run.argv)},
        "files": {path: path in host.packages.keys or host.file(path).exists for run in runs for path in run.files},
    }


def units(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The units that this command enables or masks."""
    switches = argv[:2] in (("systemctl", "enable"), ("systemctl", "mask"))
    return tuple(word for word in argv[2:] if not word.startswith("-")) if switches else ()


def _state(host: HostFacts, unit: str) -> tuple[str, str]:
    service = host.services.get(unit) or host.services.get(unit.removesuffix(".service")) or ServiceFacts()
    return service.enabled, service.active
