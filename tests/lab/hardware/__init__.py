"""The GPUs in a host, and the kernel side of their driver: what sysfs, modprobe and modinfo show.

The kernel here has no NVIDIA module to load. `modprobe nvidia` therefore writes what the real module would show:
/sys/module/nvidia, /proc/driver/nvidia, /dev/nvidia*; or it fails with the kernel's words (faults.py).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.lab.host import Host

from .pci import DEVICES, write_device

FILES = Path(__file__).with_name("files")


@dataclass(frozen=True)
class GpuModel:
    """What nvidia-smi says about a GPU."""

    name: str
    architecture: str
    memory_mib: int
    capability: str
    mig: str  # "Disabled" where the GPU could, "N/A" where it cannot
    part: str  # PCI device and vendor, as nvidia-smi writes them


MODELS = {
    "h100": GpuModel("NVIDIA H100 80GB HBM3", "Hopper", 81559, "9.0", "Disabled", "0x233010DE"),
    "l4": GpuModel("NVIDIA L4", "Ada Lovelace", 23034, "8.9", "N/A", "0x27B810DE"),
    "v100": GpuModel("Tesla V100-SXM2-32GB", "Volta", 32768, "7.0", "N/A", "0x1DB510DE"),
}
BMC = ("0000:02:00.0", "bmc")
MACHINES: dict[str, tuple[tuple[str, str], ...]] = {
    "none": (BMC,),
    "h100": (BMC, ("0000:19:00.0", "h100")),
    "l4": (BMC, ("0000:3b:00.0", "l4")),
    "v100": (BMC, ("0000:3b:00.0", "v100")),
    "hgx-h100": (
        BMC,
        *((f"0000:{bus}:00.0", "nvswitch") for bus in ("07", "08", "09", "0a")),
        ("0000:18:00.0", "cx7"),
        *((f"0000:{bus}:00.0", "h100") for bus in ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")),
    ),
}
# Where the stand-ins go in the host; lab-kmod keeps the real tools' names, since kmod looks at its argv[0].
PLACES = {
    "modprobe": "/usr/sbin/modprobe",
    "rmmod": "/usr/sbin/rmmod",
    "modinfo": "/usr/sbin/modinfo",
    "mokutil": "/usr/bin/mokutil",
    "update-initramfs": "/usr/sbin/update-initramfs",
    "lab-hardware": "/usr/local/lib/lab/hardware",
    "gpus.sh": "/usr/local/lib/lab/gpus.sh",
}


def fit(host: Host) -> None:
    """Put the GPUs into a host that has not booted yet."""
    (host.state / "faults").mkdir(parents=True)
    plug(host, host.recipe.gpu)
    for name, place in PLACES.items():
        if name == "update-initramfs" and host.exists("/usr/bin/dracut"):
            continue  # the image has dracut, and dracut 112 has an update-initramfs of its own
        host.write(place, (FILES / name).read_text(), 0o755)
    for tool in ("modprobe", "modinfo"):
        _link(host.path(f"/usr/local/lib/lab/{tool}"), "/bin/kmod")
    _enable_at_boot(host)


def plug(host: Host, gpu: str) -> None:
    """The devices of one of MACHINES, from the next boot on."""
    machine = MACHINES.get(gpu)
    if machine is None:
        raise ValueError(f"gpu {gpu!r} is not one of {', '.join(MACHINES)}")
    shutil.rmtree(host.state / "pci", ignore_errors=True)
    for address, kind in machine:
        write_device(host.state / "pci" / address, DEVICES[kind])
    (host.state / "gpus").write_text(
        "".join(_row(address, MODELS[kind]) for address, kind in machine if kind in MODELS)
    )


def _row(address: str, model: GpuModel) -> str:
    """A line of /run/lab/gpus; the stubs read it with `IFS='|' read`."""
    fields = (address, model.name, model.architecture, str(model.memory_mib), model.capability, model.mig, model.part)
    return "|".join(fields) + "\n"


def _enable_at_boot(host: Host) -> None:
    unit = "lab-hardware.service"
    host.write(f"/etc/systemd/system/{unit}", (FILES / unit).read_text())
    wants = host.path("/etc/systemd/system/sysinit.target.wants")
    wants.mkdir(exist_ok=True)
    _link(wants / unit, f"../{unit}")


def _link(path: Path, target: str) -> None:
    """An image that was made from a host has it already."""
    path.unlink(missing_ok=True)
    path.symlink_to(target)
