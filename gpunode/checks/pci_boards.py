"""Boards with NVSwitches, and the number of GPUs that is expected: are all of them on the PCI bus?"""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.expect.words import unsaid
from gpunode.checks.pci import SYSFS
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts, PciDevice
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

SWITCHES = {2: 6, 3: 4}  # generation -> on one baseboard: HGX A100 has six, HGX H100 and H200 have four
ON_A_BOARD = 8  # GPUs, on each baseboard with those switches; the boards for four GPUs have none


@check(
    "pci.expected-count",
    Severity.ERROR,
    title="as many GPUs as expected",
    reads=f"{SYSFS} against expect.gpus of the spec; without it, on metal, against the NVSwitches of HGX boards",
    remedy=Remedy(RepairAction.REPLACE, "correct expect.gpus in the spec, or replace the node"),
)
def expected_count(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU that is expected is missing: by the spec, or by the board that it belongs to."""
    want = context.spec.expect.gpus if context.spec else None
    if want is None:
        return _of_boards(host, context)
    if why := needs.read("pci")(host):
        return unsaid(host, "GPUs", "gpus", str(want), NotApplicable(why))
    if len(host.gpus) == want:
        return None
    return Finding(
        f"{len(host.gpus)} of {want} GPUs are on the PCI bus",
        evidence=f"{SYSFS}: {listing((d.address for d in host.gpus), 16) or 'none'}",
        remedy=Remedy(
            RepairAction.POWER_CYCLE,
            "power the node off and on, then inspect the slot that is missing; correct expect.gpus when it is wrong",
        ),
    )


def _of_boards(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU that belongs to a virtual machine is still on the bus of its host."""
    switches = context.catalog.nvswitches(host)
    built = SWITCHES.get(_generation(context, switches[0])) if switches and host.virtualization is None else None
    if built is None:
        return NotApplicable("no number of GPUs is expected: expect.gpus is not set")
    boards = -(-len(switches) // built)  # of one that lacks a switch, too (pci.nvswitch-present)
    want = boards * ON_A_BOARD
    if len(host.gpus) >= want:
        return None
    return Finding(
        f"{len(host.gpus)} GPUs are on the PCI bus, and {'boards' if boards > 1 else 'a board'} with "
        f"{len(switches)} NVSwitches {'have' if boards > 1 else 'has'} {want}",
        evidence=f"{SYSFS}: {listing((d.address for d in host.gpus), 16) or 'none'}",
        remedy=Remedy(
            RepairAction.POWER_CYCLE,
            f"power the node off and on, then inspect the baseboard; --expect-gpus {len(host.gpus)} where it is meant",
        ),
    )


def _generation(context: Context, switch: PciDevice) -> int:
    return next(s.generation for s in context.catalog.switches if switch.device in s.ids)


@check(
    "pci.nvswitch-present",
    Severity.WARNING,
    title="all NVSwitches of the board are present",
    reads=f"{SYSFS}/*/class 0680 of vendor 10de",
    remedy=Remedy(RepairAction.POWER_CYCLE, "power the node off and on, then inspect the baseboard"),
    needs=(needs.gpu,),
)
def nvswitch_present(host: HostFacts, context: Context) -> CheckOutcome:
    """The baseboard shows fewer NVSwitches than it was built with."""
    switches = context.catalog.nvswitches(host)
    if not switches:
        return NotApplicable("no NVSwitch on the PCI bus")
    if host.virtualization is not None:
        return NotApplicable("a virtual machine may have only some of the switches")
    generation = _generation(context, switches[0])
    want = SWITCHES.get(generation)
    if want is None:
        return NotApplicable(f"how many NVSwitches of generation {generation} a board has is not known")
    if len(switches) % want == 0:  # two boards in one chassis show twice as many
        return None
    return Finding(
        f"{len(switches)} NVSwitches, a board has {want}",
        evidence=f"{SYSFS}: {listing((d.address for d in switches), 8)}",
        remedy=Remedy(RepairAction.POWER_CYCLE, "power the node off and on, then inspect the baseboard"),
    )
