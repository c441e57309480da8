"""The machine that was expected: models of GPUs, switches, NUMA nodes, network ports, MIG."""

from __future__ import annotations

from collections import Counter

from gpunode.checks.expect import seen
from gpunode.checks.expect.words import differs, expected, unsaid, unset
from gpunode.checks.health.seen import about
from gpunode.checks.mig import misfits, shape
from gpunode.checks.registry import Context, check
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts, PciDevice
from gpunode.model.report import CheckOutcome, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

SYSFS = "/sys/bus/pci/devices"
OTHER_MACHINE = Remedy(RepairAction.REPLACE, "inspect the machine or take another instance type; else correct {}")


def _remedy(key: str) -> Remedy:
    return OTHER_MACHINE.reworded(lambda text: text.format(f"expect.{key}"))


@check(
    "expect.model",
    Severity.ERROR,
    title="the GPUs are of the expected models",
    reads=f"{SYSFS} and gpunode's catalog, against expect.model",
    remedy=_remedy("model"),
)
def model(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is of another model than the expected ones, or an expected model is not there."""
    want, found = expected(context).model, seen.models(host, context.catalog)
    if want is None:
        return unset("model")
    if isinstance(found, NotApplicable):
        return unsaid(host, "GPU model", "model", want, found)
    names = {gpu.address: _names(context, gpu) for gpu in host.gpus}
    others = [address for address, of in names.items() if not of & {word.lower() for word in want}]
    missing = [word for word in want if not any(word.lower() in of for of in names.values())]
    if not others and not missing:
        return None
    return differs("GPU model", "model", want, found, reads=SYSFS, remedy=_remedy("model"), about=pci(*others))


def _names(context: Context, gpu: PciDevice) -> set[str]:
    return {gpu.device.lower(), seen.model_of(context.catalog, gpu).lower()}


@check(
    "expect.nvswitches",
    Severity.ERROR,
    title="as many NVSwitches as expected",
    reads=f"{SYSFS} against expect.nvswitches",
    remedy=_remedy("nvswitches"),
)
def nvswitches(host: HostFacts, context: Context) -> CheckOutcome:
    """There are fewer or more NVSwitches on the PCI bus than expected."""
    want, found = expected(context).nvswitches, seen.nvswitches(host, context.catalog)
    if want is None:
        return unset("nvswitches")
    if isinstance(found, NotApplicable):
        return unsaid(host, "NVSwitches", "nvswitches", str(want), found)
    if found == (str(want),):
        return None
    there = pci(*(switch.address for switch in context.catalog.nvswitches(host)))
    return differs("NVSwitches", "nvswitches", str(want), found, reads=SYSFS, remedy=_remedy("nvswitches"), about=there)


@check(
    "expect.numa",
    Severity.ERROR,
    title="the GPUs are at the expected NUMA nodes",
    reads=f"{SYSFS}/*/numa_node against expect.numa",
    remedy=_remedy("numa"),
)
def numa(host: HostFacts, context: Context) -> CheckOutcome:
    """The GPUs are at other NUMA nodes than expected: a GPU is missing, or the firmware was set otherwise."""
    want, found = expected(context).numa, seen.numa(host)
    if want is None:
        return unset("numa")
    if isinstance(found, NotApplicable):
        return unsaid(host, "GPUs by NUMA node", "numa", want, found)
    counts = dict(pair.split("=") for pair in found)
    odd = {
        node
        for node, count in (pair.split("=") for pair in (*want, *found))
        if (node, count) not in counts.items() or f"{node}={count}" not in want
    }
    if not odd:
        return None
    there = pci(*(gpu.address for gpu in host.gpus if str(gpu.numa_node) in odd))
    return differs(
        "GPUs by NUMA node", "numa", want, found, reads=f"{SYSFS}/*/numa_node", remedy=_remedy("numa"), about=there
    )


@check(
    "expect.nics",
    Severity.ERROR,
    title="as many RDMA ports as expected, at the expected rates",
    reads="/sys/class/infiniband/*/ports/*/state and rate, against expect.nics",
    remedy=_remedy("nics"),
)
def nics(host: HostFacts, context: Context) -> CheckOutcome:
    """RDMA ports are missing, not active, or at another rate than expected."""
    want, there = expected(context).nics, seen.ports(host)
    if want is None:
        return unset("nics")
    if isinstance(there, NotApplicable):
        return unsaid(host, "RDMA ports", "nics", want, there)
    rates = Counter(seen.rate(port) or "" for port in there)
    found = [f"{count}x{rate}" if rate else f"{count} not active" for rate, count in sorted(rates.items())]
    total = [word for word in want if "x" not in word]
    by_rate = {word for word in want if "x" in word}
    right = all(word == str(len(there)) for word in total) and (not by_rate or by_rate == set(found))
    if right:
        return None
    named = {word.partition("x")[2] for word in by_rate}
    odd = pci(*(port.address for port in there if port.address and (seen.rate(port) or "") not in named))
    return differs(
        "RDMA ports",
        "nics",
        want,
        found,
        reads="/sys/class/infiniband",
        remedy=_remedy("nics"),
        about=odd if by_rate else (),
    )


@check(
    "expect.mig",
    Severity.ERROR,
    title="the GPUs have the expected MIG layout",
    reads="nvidia-smi -q -x and nvidia-smi -L, against expect.mig",
    remedy=Remedy(RepairAction.CONFIGURE, "partition the GPUs (--mig of setup); else correct expect.mig"),
)
def mig(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU is partitioned in another way than expected."""
    want = expected(context).mig
    if want is None:
        return unset("mig")
    wrong = misfits(host, context, want)
    if isinstance(wrong, NotApplicable):
        return unsaid(host, "MIG layout", "mig", [str(layout) for layout in want], wrong)
    if not wrong:
        return None
    found = sorted({shape(gpu) for gpu, _ in wrong})
    return differs(
        "MIG layout",
        "mig",
        [*dict.fromkeys(str(layout) for _, layout in wrong)],
        found,
        reads="nvidia-smi -L",
        remedy=Remedy(RepairAction.CONFIGURE, "partition the GPUs (--mig of setup); else correct expect.mig"),
        about=about(gpu for gpu, _ in wrong),
    )
