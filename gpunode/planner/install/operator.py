"""A host where NVIDIA's GPU Operator is in charge: what it brings is its own, whichever part of setup is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts
from gpunode.model.operator import IN_CHARGE, owned_by_operator
from gpunode.model.plan import Kept
from gpunode.model.spec import Spec
from gpunode.remedy import Remedy, RepairAction, setup


def parts_beside_operator(host: HostFacts, spec: Spec, only: Sequence[str]) -> tuple[tuple[str, ...], tuple[Kept, ...]]:
    """The parts of setup that are not the operator's, and what is said of those that are.

    Raises UnsupportedHost where nothing else is asked for, or where the driver is the operator's too.
    """
    evidence = owned_by_operator(host)
    theirs = ("driver", "toolkit", "runtime") if host.driver.container else ("toolkit", "runtime")
    taken = [part for part in theirs if part in only and _is_wanted(spec, part)]
    if not evidence or not taken:
        return tuple(only), ()
    if host.driver.container or not ("driver" in only and _is_wanted(spec, "driver")):
        raise _refused(host, evidence)
    words = f"{IN_CHARGE} toolkit and engines ({'; '.join(evidence)}); gpunode leaves them to it"
    return tuple(part for part in only if part not in theirs), (Kept("toolkit.install", words),)


def _is_wanted(spec: Spec, part: str) -> bool:
    kinds = {"driver": spec.driver.kind != "none", "toolkit": spec.toolkit.kind != "none"}
    return kinds.get(part, spec.runtimes != ())


def _refused(host: HostFacts, evidence: Sequence[str]) -> UnsupportedHost:
    driver = host.driver.container
    switches = " and ".join(
        [*(["driver.enabled=false"] if driver else []), *(["toolkit.enabled=false"] if host.toolkit.operator else [])]
    )
    return UnsupportedHost(
        f"{host.hostname}: {IN_CHARGE} {'driver, toolkit and engines' if driver else 'toolkit and engines'}",
        evidence="; ".join(evidence),
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"leave them to it; or set {switches} in the GPU Operator's ClusterPolicy, reboot, and run ",
            setup(),
            " again",
        ),
    )
