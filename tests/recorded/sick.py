"""Constructed hosts on which nvidia-smi prints more than values: one sick GPU among healthy ones, and 610's notes.

The tags are those of real answers (examples/hosts/debian12-ready, nvidia-smi 595). The words are nvidia-smi's own;
in which fields a sick GPU has them differs from case to case, and the ones here are an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.recorded.more_hosts import A100, DEBIAN12, H100_PCIE, L40S, OPEN_SET, ROCKY9, UBUNTU2404
from tests.recorded.nouns import Driver, GpuModel, Recipe

KMOD_SET = ("nvidia-open", "kmod-nvidia-open-dkms", "nvidia-driver-cuda", "nvidia-driver-cuda-libs")
# In place of every reading of a GPU that is gone.
READINGS = ("uuid", "persistence", "mig", "memory", "ecc", "temperature", "power", "utilization")
DRIVER_610 = "610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]"
CUDA_610 = "13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]"
NEW_IN_610 = "\t<kmd_version>610.57.04</kmd_version>\n\t<cuda_umd_version>13.3</cuda_umd_version>\n"


def gpu_xml(address: str, name: str, memory_mib: int, odd: Mapping[str, str]) -> str:
    """One <gpu>; `odd` replaces values by their names in `values`."""
    values = {
        "uuid": f"GPU-00000000-0000-4000-8000-0000000000{address[5:7]}",
        "persistence": "Enabled",
        "mig": "N/A",
        "recovery": "None",
        "memory": f"{memory_mib} MiB",
        "utilization": "0 %",
        "ecc": "Enabled",
        "temperature": "31 C",
        "power": "69.62 W",
    } | dict(odd)
    return (
        f'\t<gpu id="0000{address.upper()}">\n'
        f"\t\t<product_name>{name}</product_name>\n"
        f"\t\t<persistence_mode>{values['persistence']}</persistence_mode>\n"
        f"\t\t<mig_mode>\n\t\t\t<current_mig>{values['mig']}</current_mig>\n"
        f"\t\t\t<pending_mig>{values['mig']}</pending_mig>\n\t\t</mig_mode>\n"
        f"\t\t<uuid>{values['uuid']}</uuid>\n"
        f"\t\t<gpu_recovery_action>{values['recovery']}</gpu_recovery_action>\n"
        f"\t\t<fb_memory_usage>\n\t\t\t<total>{values['memory']}</total>\n\t\t</fb_memory_usage>\n"
        f"\t\t<utilization>\n\t\t\t<gpu_util>{values['utilization']}</gpu_util>\n\t\t</utilization>\n"
        f"\t\t<ecc_mode>\n\t\t\t<current_ecc>{values['ecc']}</current_ecc>\n\t\t</ecc_mode>\n"
        f"\t\t<temperature>\n\t\t\t<gpu_temp>{values['temperature']}</gpu_temp>\n\t\t</temperature>\n"
        f"\t\t<gpu_power_readings>\n\t\t\t<instant_power_draw>{values['power']}</instant_power_draw>\n"
        "\t\t</gpu_power_readings>\n\t</gpu>\n"
    )


def smi_xml(driver: str, cuda: str, gpus: str, new: str = "") -> str:
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f"\t<driver_version>{driver}</driver_version>\n\t<cuda_version>{cuda}</cuda_version>\n{new}"
        f"\t<attached_gpus>{gpus.count('<gpu id=')}</attached_gpus>\n{gpus}</nvidia_smi_log>\n"
    )


def addresses(model: GpuModel) -> list[str]:
    """As construct.py numbers them."""
    return [f"0000:{0x19 + n:02x}:00.0" for n in range(model.count)]


def listed(model: GpuModel, name: str, memory_mib: int, sick: Mapping[int, Mapping[str, str]]) -> str:
    return "".join(gpu_xml(a, name, memory_mib, sick.get(n, {})) for n, a in enumerate(addresses(model)))


def working(model: GpuModel, driver: str, libraries: str) -> dict[str, str]:
    """What the probe sees of a driver that owns all of these GPUs."""
    nodes = [*(f"195, {n:3} Nov 23 08:00 /dev/nvidia{n}" for n in range(model.count))]
    nodes += ["195, 255 Nov 23 08:00 /dev/nvidiactl", "511,   0 Nov 23 08:00 /dev/nvidia-uvm"]
    return {
        "devices": "".join(f"crw-rw-rw- 1 0 0 {node}\n" for node in nodes),
        "proc_devices": "195 nvidia\n511 nvidia-uvm\n",
        "ldconfig": "".join(f"{so}.so.1 {libraries}/{so}.so.{driver}\n" for so in ("libcuda", "libnvidia-ml")),
    }


def sick(recipe: Recipe, *, libraries: str = "/usr/lib/x86_64-linux-gnu", log: str = "") -> Recipe:
    """`recipe` with all that a working driver shows but nvidia-smi's answer."""
    assert recipe.driver
    model = recipe.models[0]
    seen = working(model, recipe.driver.version, libraries) | {"kernel_log": log}
    return replace(recipe, marks=tuple(f"gpu={a}" for a in addresses(model)), sections=tuple(seen.items()))


H100S = replace(H100_PCIE, count=8)
SICK: tuple[Recipe, ...] = (
    sick(
        Recipe(
            "ubuntu2404-lost-h100",
            "8 × H100 of which one has fallen off the bus: the other seven are set up",
            UBUNTU2404,
            (H100S,),
            docker="28.5.2",
            driver=Driver("595.91.07", "open", OPEN_SET),
            toolkit="1.20.0",
            smi=(
                smi_xml(
                    "595.91.07",
                    "13.2",
                    listed(H100S, "NVIDIA H100 PCIe", 81559, {3: dict.fromkeys(READINGS, "GPU is lost")}),
                ),
                15,
            ),
        ),
        log="[81211.412391] NVRM: GPU at PCI:0000:1c:00: GPU-00000000-0000-4000-8000-00000000001c\n"
        "[81211.412402] NVRM: Xid (PCI:0000:1c:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
    ),
    sick(
        Recipe(
            "rocky9-reset-required-a100",
            "4 × A100 of which one waits for a reset",
            ROCKY9,
            (A100,),
            docker="28.5.2",
            driver=Driver("595.91.07", "open", KMOD_SET),
            toolkit="1.20.0",
            smi=(
                smi_xml(
                    "595.91.07",
                    "13.2",
                    listed(
                        A100,
                        "NVIDIA A100 80GB PCIe",
                        81920,
                        {1: {"recovery": "Reset", "utilization": "GPU requires reset"}},
                    ),
                ),
                0,
            ),
        ),
        libraries="/usr/lib64",
        log="[ 9120.551201] NVRM: Xid (PCI:0000:1a:00): 95, pid=4120, name=python3, Uncontained: FBHUB. RST: Yes\n",
    ),
    sick(
        Recipe(
            "debian12-err-a100",
            "4 × A100 of which one answers with errors where its sensors should be",
            DEBIAN12,
            (A100,),
            docker="28.5.2",
            driver=Driver("595.91.07", "open", OPEN_SET),
            toolkit="1.20.0",
            smi=(
                smi_xml(
                    "595.91.07",
                    "13.2",
                    listed(
                        A100,
                        "NVIDIA A100 80GB PCIe",
                        81920,
                        {2: {"power": "ERR!", "temperature": "ERR!", "utilization": "Unknown Error"}},
                    ),
                ),
                0,
            ),
        ),
    ),
    sick(
        Recipe(
            "ubuntu2404-driver610-l40s",
            "driver 610, whose nvidia-smi prints notes behind its versions, and new fields for them",
            UBUNTU2404,
            (L40S,),
            docker="28.5.2",
            driver=Driver("610.57.04", "open", OPEN_SET),
            toolkit="1.20.0",
            smi=(smi_xml(DRIVER_610, CUDA_610, listed(L40S, "NVIDIA L40S", 46068, {}), NEW_IN_610), 0),
            options=("--driver", "610"),
        ),
    ),
)
