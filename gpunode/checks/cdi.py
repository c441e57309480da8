"""CDI specifications: the files that tell engines which nodes and libraries make a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from gpunode.advice import listing, named, typed
from gpunode.catalog import cdi_versions
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import setting
from gpunode.model.cdi_devices import KIND, REFRESHED, difference, is_of_ctk, kind_of, names
from gpunode.model.entities import place
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_MODE
from gpunode.remedy import Remedy, RepairAction, setup

Devices = Mapping[str, frozenset[str]]  # a specification's path -> the names of its devices
# Of another kind, which setup does not make.
OF_A_POD = "delete the pod that makes it, of NVIDIA's device plugin or of the GPU Operator; its DaemonSet makes another"


@check(
    "ctk.cdi-present",
    Severity.ERROR,
    title="a CDI specification of the GPUs exists",
    reads="/etc/cdi and /var/run/cdi",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit", "--cdi")),
    needs=(needs.gpu_for_containers, needs.toolkit),
)
def cdi_present(host: HostFacts, context: Context) -> CheckOutcome:
    """CDI is asked for and no specification names a GPU."""
    by_spec = context.spec is not None and context.spec.runtime.cdi
    by_config = setting(host.file(TOOLKIT_CONFIG), TOOLKIT_MODE) == "cdi"
    if not (by_spec or by_config):
        return NotApplicable("nothing asks for CDI specifications: neither the spec nor the toolkit's mode")
    if any(d.startswith("nvidia.com/gpu=") for d in host.toolkit.cdi_devices):
        return None
    return Finding(
        "no CDI specification names nvidia.com/gpu",
        evidence=f"/etc/cdi and /var/run/cdi: {listing(host.toolkit.cdi_specs) or 'no files'}",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit", "--cdi")),
    )


@check(
    "ctk.cdi-fresh",
    Severity.ERROR,
    title="the CDI specifications match the running driver",
    reads="/etc/cdi/*, /var/run/cdi/* against /sys/module/nvidia/version",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit")),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.toolkit),
)
def cdi_fresh(host: HostFacts, context: Context) -> CheckOutcome:
    """The CDI specification mounts libraries of a driver that is gone, so containers do not start."""
    texts = [(path, host.file(path).text or "") for path in host.toolkit.cdi_specs]
    mounts = [(path, text) for path, text in texts if "libcuda.so." in text]
    if not mounts:
        return NotApplicable("no CDI specification mounts driver libraries")
    old = {path: text for path, text in mounts if f"libcuda.so.{host.driver.loaded}" not in text}
    stale = sorted(old, key=lambda path: kind_of(old[path]) != KIND)  # those that setup makes anew come first
    if not stale:
        return None
    ours = kind_of(old[stale[0]]) == KIND
    return Finding(
        f"{listing(stale)} is for another driver version",
        evidence=f"{stale[0]} does not mount libcuda.so.{host.driver.loaded}, the version that is loaded",
        entities=tuple(map(place, stale)),
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit") if ours else OF_A_POD),
    )


@check(
    "ctk.cdi-devices",
    Severity.ERROR,
    title="the CDI specifications name the GPUs and MIG instances that are here",
    reads="device names in /etc/cdi/*, /var/run/cdi/* against nvidia-smi",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit")),
    needs=(needs.gpu, needs.host_driver, needs.loaded, needs.toolkit),
)
def cdi_devices(host: HostFacts, context: Context) -> CheckOutcome:
    """The CDI specification is of other GPUs or of another MIG layout, so containers get none or the wrong ones."""
    if host.driver.smi is None or not host.driver.smi.answered:
        return NotApplicable("nvidia-smi did not list the GPUs")
    if host.driver.smi.lost:
        return NotApplicable("a GPU is lost (health.gpu-lost)")
    texts = {path: host.file(path).text or "" for path in host.toolkit.cdi_specs}
    kinds = {path: text for path, text in texts.items() if kind_of(text) == KIND}
    if not kinds:
        return NotApplicable("no CDI specification names nvidia.com/gpu")
    wrong = {path: other for path, text in kinds.items() if (other := difference(host.driver.smi, text))}
    if not wrong:
        return None
    return Finding(
        f"{listing(wrong)} is for other GPUs or MIG instances",
        evidence="; ".join(f"{path}: {other}" for path, other in wrong.items()),
        entities=tuple(map(place, wrong)),
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit")),
    )


@check(
    "ctk.cdi-readable",
    Severity.ERROR,
    title="every engine can read the CDI specifications",
    reads="cdiVersion in /etc/cdi/* and /var/run/cdi/* against the engines' versions",
    remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit")),
    needs=(needs.gpu_for_containers, needs.engine, needs.toolkit),
)
def cdi_readable(host: HostFacts, context: Context) -> CheckOutcome:
    """An engine cannot read the CDI specification, so it finds no GPU in it (unresolvable CDI devices)."""
    texts = {path: host.file(path).text or "" for path in host.toolkit.cdi_specs}
    if not texts:
        return NotApplicable("there is no CDI specification")
    behind = cdi_versions.behind(host, cdi=context.spec is not None and context.spec.runtime.cdi)
    new = [path for path, text in texts.items() if kind_of(text) == KIND and cdi_versions.is_new(text)]
    if not behind or not new:
        return None
    return Finding(
        f"{cdi_versions.titles(behind)} cannot read {listing(new)}",
        evidence=f"{new[0]} is of CDI version {cdi_versions.version_of(texts[new[0]])}, which came after that release",
        remedy=Remedy(RepairAction.CONFIGURE, setup("--only", "toolkit")),
    )


@check(
    "ctk.cdi-duplicate",
    Severity.WARNING,
    title="each CDI device is defined in one specification",
    reads="device names in /etc/cdi/*, /var/run/cdi/*",
    remedy=Remedy(RepairAction.CONFIGURE, "rm the stale one"),
    needs=(needs.gpu_for_containers, needs.toolkit),
)
def cdi_duplicate(host: HostFacts, context: Context) -> CheckOutcome:
    """Two CDI specifications define the same device; an old one may win."""
    texts = {path: host.file(path).text or "" for path in host.toolkit.cdi_specs}
    devices = {path: frozenset(names(text)) for path, text in texts.items() if kind_of(text) == KIND}
    if not devices:
        return NotApplicable("no CDI specification names nvidia.com/gpu")
    # Several files of one kind are normal: CDI wants the name to be unique among the kind's devices (its README).
    twice = [pair for pair in combinations(devices, 2) if devices[pair[0]] & devices[pair[1]]]
    if not twice:
        return None
    paths = [path for path in devices if any(path in pair for pair in twice)]
    first, second = min(twice, key=lambda pair: not _covered(devices, *pair))
    return Finding(
        f"{len(paths)} CDI specifications define the same devices of nvidia.com/gpu",
        evidence=f"{first} and {second}: {listing(sorted(devices[first] & devices[second]))}"
        + (f"; {len(paths)} in all: {listing(paths)}" if len(paths) > 2 else ""),
        entities=tuple(map(place, paths)),
        remedy=Remedy(RepairAction.CONFIGURE, _one_less(host, devices, first, second)),
    )


def _covered(devices: Devices, first: str, second: str) -> list[str]:
    """Which of the two defines nothing that the other does not; one of an admin's directory first. The toolkit's unit
    writes REFRESHED again, and engines take a device of its directory before one of /etc/cdi: it is never the one.
    """
    found = [one for one, other in ((first, second), (second, first)) if devices[one] <= devices[other]]
    return sorted((path for path in found if path != REFRESHED), key=lambda path: not path.startswith("/etc/"))


def _one_less(host: HostFacts, devices: Devices, first: str, second: str) -> str:
    covered = _covered(devices, first, second)
    if covered:
        return f"{typed('rm', covered[0])} when nvidia-cdi-refresh writes the other; keep one"
    both = listing(map(named, sorted(devices[first] & devices[second])))
    if REFRESHED not in (first, second):
        places = f"{named(first)} or out of {named(second)}"
        return f"take {both} out of {places}; each names devices that the other does not"
    by_hand = second if first == REFRESHED else first
    other = difference(host.driver.smi, host.file(by_hand).text or "")
    if other and other.gone and all(map(is_of_ctk, devices[by_hand])):
        words = f"{typed('rm', by_hand)} since it is for other GPUs or MIG instances"
    else:
        words = f"take {both} out of {named(by_hand)}"
    return f"{words}; nvidia-cdi-refresh writes {REFRESHED}"


@check(
    "ctk.cdi-refresh-unit",
    Severity.WARNING,
    title="CDI specifications are renewed automatically",
    reads="systemctl show nvidia-cdi-refresh.path nvidia-cdi-refresh.service",
    remedy=Remedy(
        RepairAction.RESTART_SERVICE, "systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
    ),
    needs=(needs.gpu_for_containers, needs.toolkit),
)
def cdi_refresh_unit(host: HostFacts, context: Context) -> CheckOutcome:
    """Nothing renews the CDI specification after a driver upgrade."""
    there = [(n, s) for n, s in host.services.items() if n.startswith("nvidia-cdi-refresh.") and s.load == "loaded"]
    if not there:
        return NotApplicable("this toolkit ships no nvidia-cdi-refresh unit")
    if any(s.enabled.startswith("enabled") for _, s in there):
        return None
    return Finding(
        f"{listing(n for n, _ in there)} is not enabled",
        evidence=f"systemctl is-enabled {there[0][0]} prints {there[0][1].enabled or 'nothing'}",
        remedy=Remedy(
            RepairAction.RESTART_SERVICE, "systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service"
        ),
    )
