"""What nvidia-container-runtime starts in its turn, for rt.handler-binary."""

from __future__ import annotations

from posixpath import basename

from gpunode.advice import named
from gpunode.checks.registry import Context
from gpunode.errors import ConfigFileError
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import TOOLKIT_CONFIG_STEP
from gpunode.model.report import Finding, Severity
from gpunode.model.spec import TOOLKIT_CONFIG
from gpunode.remedy import Remedy, RepairAction, setup


def wrong_low_level(host: HostFacts, context: Context, engine: RuntimeFacts) -> Finding | None:
    """CRI-O's containers by nvidia-container-runtime do not start, or those from before it cannot be ended."""
    from gpunode.engines.crio import Crio
    from gpunode.engines.handler import at_hand, candidates, is_guessed, starts, with_first

    if engine.name != Crio.name:
        return None
    try:
        low = Crio().low_level(host, engine, context.handler)
    except ConfigFileError:
        return None  # rt.crio and setup say what is wrong with its files
    if low is None or starts(host, low) or is_guessed(host):
        return None
    listed, found = ", ".join(candidates(host)) or "nothing", at_hand(host)
    evidence = f"{TOOLKIT_CONFIG}: runtimes {listed}; CRI-O's {low.name} is {low.program}"
    if not found:
        return Finding(
            f"nvidia-container-runtime finds none of {listed}: {engine.name} starts no container of {context.handler}",
            evidence=evidence,
            remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "runtime")),
            steps=(TOOLKIT_CONFIG_STEP,),
            entities=unit(engine.unit),
        )
    wanted = ",".join(with_first(host, low))
    return Finding(
        f"nvidia-container-runtime looks for {found[0]} first, and {engine.name}'s own runtime is {low.program}",
        evidence=f"{evidence}; {basename(found[0])} cannot end containers that {low.name} made",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "with the node drained, ",
            setup("--only", "toolkit", "--ctk-set", f"runtimes={named(wanted)}"),
            ", and remove the pods that remain",
        ),
        severity=Severity.WARNING,
        entities=unit(engine.unit),
    )
