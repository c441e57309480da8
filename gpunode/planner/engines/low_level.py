"""What the toolkit's config.toml must say before CRI-O's containers run by nvidia-container-runtime."""

from __future__ import annotations

from dataclasses import replace
from posixpath import basename

from gpunode.advice import listing
from gpunode.advice import named as quoted
from gpunode.engines.crio import Crio
from gpunode.engines.handler import LowLevel, at_hand, starts, with_first
from gpunode.engines.kubernetes.for_pods import runtime_wanted
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import TOOLKIT_CONFIG, Spec, ToolkitConfig
from gpunode.remedy import Remedy, RepairAction, setup

CRIO = Crio()


def with_low_level(host: HostFacts, spec: Spec, config: ToolkitConfig) -> ToolkitConfig:
    """`config`, with the low-level runtime first that a CRI-O which is set up started its containers by so far.

    Unchanged where refuse_shared refuses that CRI-O.
    """
    chosen = host.runtimes if spec.runtimes is None else [e for e in host.runtimes if e.name in spec.runtimes]
    found = [low for e in chosen if (low := lacking(host, spec, e))] if "runtime" in spec.only else []
    if not found or _sharing(host, spec, found[0]):
        return config
    return replace(config, runtimes=with_first(host, found[0]))


def lacking(host: HostFacts, spec: Spec, facts: RuntimeFacts) -> LowLevel | None:
    """What nvidia-container-runtime does not start yet, and CRI-O needs; None where --ctk-set names `runtimes`.

    Where CRI-O runs by the handler already, containers are those of what is started now: nothing to change, unless
    there is nothing to start.
    """
    want = runtime_wanted(spec, facts)
    if facts.name != CRIO.name or spec.toolkit_config.runtimes is not None:
        return None
    try:
        CRIO.rewrite(host, facts, want)
        low = CRIO.low_level(host, facts, want.handler)
    except (ConfigFileError, UnsupportedHost):
        return None  # CRI-O's own step is refused for it
    in_force = facts.effective_default == want.handler if want.default else want.handler in facts.handlers
    return None if low is None or starts(host, low) or (in_force and at_hand(host)) else low


def waits_for_toolkit(host: HostFacts, spec: Spec, facts: RuntimeFacts, *, restarts: bool) -> str:
    """Why CRI-O is not set up before the toolkit is installed, with which the file comes; "" where it can be.

    `restarts`: it is restarted then.
    """
    if host.file(TOOLKIT_CONFIG).exists:
        return ""
    low = lacking(host, spec, facts)
    return (
        f"{facts.name} gets {spec.runtime.handler}{', and is restarted,' if restarts else ''} after the toolkit is "
        f"installed: {TOOLKIT_CONFIG} comes with it, and must name {low.program} first"
        if low
        else ""
    )


def refuse_shared(host: HostFacts, spec: Spec, facts: RuntimeFacts) -> None:
    """Raises UnsupportedHost where an engine, CRI-O itself or another, may have containers by the handler.

    They are another program's. CRI-O has its own where the handler is in force, and the default is not yet.
    """
    low = lacking(host, spec, facts)
    sharing = _sharing(host, spec, low) if low else []
    if low is None or not sharing:
        return
    now, order = basename(at_hand(host)[0]), f"runtimes={quoted(','.join(with_first(host, low)))}"
    evidence = (
        f"runtimes in {TOOLKIT_CONFIG} applies to the whole host: containers that {now} made could not be stopped or "
        "exec'd into any more"
    )
    if others := [e.label for e in sharing if e.name != CRIO.name]:
        raise UnsupportedHost(
            f"CRI-O needs {low.program} below nvidia-container-runtime, and {listing(others)} has {now} there",
            evidence=evidence,
            remedy=f"--runtime {quoted(others[0])} leaves CRI-O as it is; or remove those containers, and name the "
            f"order with --ctk-set {order}",
        )
    raise UnsupportedHost(
        f"CRI-O's default is {low.name}, and its containers by {spec.runtime.handler} are {now}'s",
        evidence=f"CRI-O needs {low.program} below nvidia-container-runtime; {evidence}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"drain the node and remove the pods of {spec.runtime.handler} that remain, then ",
            setup("--only", "toolkit,runtime", "--ctk-set", order),
            "; --no-default leaves CRI-O as it is",
        ),
    )


def _sharing(host: HostFacts, spec: Spec, low: LowLevel) -> list[RuntimeFacts]:
    """The engines that may have containers which nvidia-container-runtime made by another program than `low`'s."""
    now = next(map(basename, at_hand(host)), None)
    if host.toolkit.runtime_path is None or now in (None, basename(low.program)):
        return []
    return [e for e in host.runtimes if e.active and e.containers_running != 0 and spec.runtime.handler in e.handlers]
