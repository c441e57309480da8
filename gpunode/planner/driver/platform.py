"""Machines whose driver comes with the platform: it stays what it is, and toolkit and engines are set up beside it."""

from __future__ import annotations

from gpunode.model.facts import HostFacts
from gpunode.model.plan import DRIVER_STEP, Kept
from gpunode.model.platforms import platform_origin
from gpunode.model.spec import Spec
from gpunode.planner.driver.foreign import refuse_foreign


def platform_driver(host: HostFacts, spec: Spec) -> Kept | None:
    """What is said of the driver where the platform brings it; None where it does not.

    Raises UnsupportedHost for a spec that asks for a driver of its own.
    """
    origin = platform_origin(host)
    if origin is None:
        return None
    if _insists(spec):
        raise refuse_foreign(host, origin)
    if host.platform == "vgpu" and not (host.driver.loaded or host.driver.installed):
        return Kept(DRIVER_STEP, f"no driver is installed: {origin.summary} ({origin.evidence}); {origin.hand_over}")
    words = f"{origin.summary} ({origin.evidence}); for another one: {origin.hand_over}"
    return Kept(DRIVER_STEP, f"the driver is not changed: {words}")


def _insists(spec: Spec) -> bool:
    """Whether leaving the driver alone would not be what was asked for."""
    return spec.driver.kind in ("branch", "exact") or spec.only == ("driver",) or bool(spec.cuda or spec.mig)
