"""What the journal keeps about a host as it was before a plan, for a later undo."""

from __future__ import annotations

from gpunode.model.facts import HostFacts
from gpunode.model.plan import Plan, Run


def before_values(host: HostFacts, plan: Plan) -> dict[str, object]:
    """What undo will want to know about the host before this plan: packages it installs, holds, default runtimes.

    packages: every package that a command of the plan installs or removes -> its version now, None when absent.
    """
    runs = [action for step in plan.steps for action in step.actions if isinstance(action, Run)]
    names = {name for run in runs for name in run.packages}
    installed = host.packages.installed
    return {
        "packages": {name: installed[name].version if name in installed else None for name in sorted(names)},
        "held": sorted(host.packages.held),
        "default_runtimes": {engine.name: engine.effective_default for engine in host.runtimes},
    }
