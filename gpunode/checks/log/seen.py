"""Which GPU an event is about, whether it still counts, and what to do about it."""

from __future__ import annotations

from gpunode.advice import typed
from gpunode.checks.pci import fallen
from gpunode.model.facts import HostFacts
from gpunode.remedy import Remedy, RepairAction

# The heaviest first.
WEIGHT = (
    RepairAction.REPLACE,
    RepairAction.REBOOT,
    RepairAction.RESET_GPU,
    RepairAction.UPGRADE,
    RepairAction.CONFIGURE,
    RepairAction.SUPPORT,
    RepairAction.WAIT,
    RepairAction.NONE,
)
AGAIN = "when it comes again, have the GPU tested and replaced"


def own_kernel(host: HostFacts) -> str | None:
    """The log is of the kernel that drives these GPUs, whoever brought the driver."""
    if host.platform == "container":
        return "this is a container: kernel and driver are those of the machine around it"
    if host.gpus and not host.own_gpus:
        return "every GPU is bound to vfio-pci (passthrough): its errors are in the guest's log"
    return None


def gpu_at(host: HostFacts, address: str) -> str:
    """ "0000:1c:00.0" of the log's "0000:1c:00"; as it is where the bus has no such GPU any more."""
    return next((gpu.address for gpu in host.gpus if gpu.address.rpartition(".")[0] == address), address)


def said_elsewhere(host: HostFacts) -> dict[str, str]:
    """GPU -> the check that finds what became of it: its Xids are part of that fault."""
    smi = host.driver.smi.gpus if host.driver.smi else ()
    asking = {gpu.pci_address: "health.recovery-action" for gpu in smi if gpu.asks_for}
    waiting = {gpu.pci_address: "health.reset-required" for gpu in smi if gpu.requires_reset}
    lost = {gpu.pci_address: "health.gpu-lost" for gpu in smi if gpu.fault == "lost"}
    return waiting | asking | lost | dict.fromkeys(fallen(host), "pci.fallen-off-bus")


def is_old(host: HostFacts, last_s: int | None) -> bool:
    """More than a day ago: what still runs has got over it, or shows it otherwise."""
    from gpunode.catalog.xids import limits

    uptime = host.kernel_state.uptime_s if host.kernel_state else None
    return last_s is not None and uptime is not None and uptime - last_s > limits()["xid-hours"] * 3600


def when(count: int, last_s: int | None) -> str:
    """ "3 times, last 9120 s after boot"."""
    times = "once" if count == 1 else f"{count} times"
    return times if last_s is None else f"{times}, {'' if count == 1 else 'last '}{last_s} s after boot"


def remedy_for(host: HostFacts, action: RepairAction, address: str) -> Remedy:
    """What the catalogue's action means at this GPU."""
    if action is RepairAction.RESET_GPU and host.driver.container:
        return Remedy(RepairAction.REBOOT, f"drain the node and reboot it: its nvidia-smi is in a container; {AGAIN}")
    reset = f"then {typed('nvidia-smi', '--gpu-reset', '-i', address)}; reboot where the reset is refused"
    words = {
        RepairAction.RESET_GPU: f"stop all that runs on it, {reset}; {AGAIN}",
        RepairAction.REBOOT: f"drain the node and reboot it; {AGAIN}",
        RepairAction.REPLACE: "power the node off, and check the GPU's power cables and seat, then its cooling",
        RepairAction.UPGRADE: "install drivers that fit each other on host and guest",
        RepairAction.CONFIGURE: "check how the GPUs are parted among guests (fabric manager's partitions)",
        RepairAction.SUPPORT: "when it comes again, run nvidia-bug-report.sh and give its file to the vendor",
        RepairAction.WAIT: "stop the programs whose GPUs talk to each other (NVLink, P2P), which lets it recover",
        RepairAction.NONE: "whoever ran the program should look for its error (compute-sanitizer finds most); where "
        "different programs meet it on this GPU alone, have the GPU tested",
    }
    return Remedy(action, words.get(action, words[RepairAction.SUPPORT]))
