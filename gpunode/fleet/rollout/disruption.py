"""Whether what a plan does is felt by what runs on the host."""

from __future__ import annotations

from gpunode.model.plan import DRIVER_STEP, MIG_STEP, REMOVE_STEP, REPLACE_STEP, SWAP_STEP, Plan
from gpunode.model.spec import RebootPolicy

# The GPUs' programs have to end for it, or fail from then on.
_TAKES_GPUS = (DRIVER_STEP, SWAP_STEP, REMOVE_STEP, REPLACE_STEP, MIG_STEP)


def disruption(plan: Plan) -> str:
    """What disturbs the work on the host: "a reboot"; "" for a plan that nobody feels.

    An engine's restart counts where the spec allows it to stop containers; all others keep them (planner/engines).
    """
    if plan.reboot is not None and plan.spec.reboot is RebootPolicy.IF_NEEDED:
        return "a reboot"
    if steps := [step.id for step in plan.steps if step.id in _TAKES_GPUS]:
        return f"step {steps[0]}"
    if plan.spec.allow_container_restart and plan.restarts:
        return f"a restart of {plan.restarts[0]}"
    return ""
