"""Flags with which the kubelet does not start."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.catalog.kubelet_flags import gone_flag
from gpunode.checks import needs
from gpunode.checks.k8s.start import NO_VERSION, unit_of
from gpunode.checks.k8s.start_rules import taken_out
from gpunode.checks.registry import Context, check
from gpunode.model import entities
from gpunode.model.facts import HostFacts
from gpunode.model.kubelet_program import kubelet_program
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import release
from gpunode.remedy import Remedy, RepairAction

PLACES = "/etc/default/kubelet or /etc/sysconfig/kubelet, kubeadm-flags.env, its unit, or kubelet-arg"


@check(
    "k8s.kubelet-flags",
    Severity.ERROR,
    title="the kubelet knows its flags",
    reads="flags in the files that the kubelet's unit reads, and of its process; its version; kubelet_flags.yaml",
    remedy=Remedy(RepairAction.CONFIGURE, f"take them out of {PLACES}"),
    needs=(needs.kubelet, needs.gpu),
)
def kubelet_flags(host: HostFacts, context: Context) -> CheckOutcome:
    """A flag is passed to the kubelet that its release does not know any more: it does not start with it."""
    from gpunode.engines.kubernetes.kubelet_told import told

    kubelet = kubelet_program(host)
    version = release(kubelet[1]) if kubelet else None
    if kubelet is None or version is None:
        return NotApplicable(NO_VERSION)
    known = told(host)
    dead = [(one, gone) for one in known.flags if (gone := gone_flag(one.name)) and version >= gone.since]
    if not dead:
        return NotApplicable(known.unknown[0]) if known.unknown else None
    names = listing(dict.fromkeys(f"--{one.name}" for one, _ in dead))
    return Finding(
        f"{kubelet[0]} {kubelet[1]} does not start with {names}",
        evidence=listing((f"{one.where} has --{one.name}, which {gone.why}" for one, gone in dead), between="; "),
        remedy=taken_out(names, [one for one, _ in dead], listing(dict.fromkeys(one.where for one, _ in dead))),
        entities=entities.unit(unit_of(host)),
    )
