"""Constructed hosts of systems that are set up using their native mechanism alone (catalog/systems.yaml)."""

from __future__ import annotations

from tests.recorded.nouns import GpuModel, Recipe, System, os_release

L4 = GpuModel("27b8", "AD104GL [L4]", 1, "10de:16ee", bar1_gib=32)
READ_ONLY = ("image_based=read-only",)


def system(name: str, kernel: str, **values: str) -> System:
    """One without a package manager that gpunode knows."""
    return System(os_release(name, **values), kernel, "", (), "")


OWN_SYSTEMS = (
    Recipe(
        "cos-l4",
        "Container-Optimized OS on Compute Engine: cos-extensions installs the driver",
        system("Container-Optimized OS from Google", "6.12.85+", ID="cos", VERSION_ID="125", BUILD_ID="19216.104.126"),
        (L4,),
        docker="27.5.1",
        identity=READ_ONLY,
    ),
    Recipe(
        "flatcar-l4",
        "Flatcar: driver and toolkit are system extensions",
        system(
            "Flatcar Container Linux by Kinvolk 4459.2.1 (Oklo)",
            "6.12.61-flatcar",
            ID="flatcar",
            ID_LIKE="coreos",
            VERSION_ID="4459.2.1",
        ),
        (L4,),
        docker="28.0.4",
        identity=READ_ONLY,
    ),
    Recipe(
        "talos-l4",
        "Talos: driver and toolkit are extensions of its image",
        system("Talos (v1.12.0)", "6.18.2-talos", ID="talos", VERSION_ID="v1.12.0"),
        (L4,),
        containerd="2.1.5",
        kubelet=True,
        identity=READ_ONLY,
    ),
    Recipe(
        "bottlerocket-l4",
        "Bottlerocket in a variant without NVIDIA's driver",
        system(
            "Bottlerocket OS 1.56.0 (aws-k8s-1.34)",
            "6.12.66",
            ID="bottlerocket",
            VARIANT_ID="aws-k8s-1.34",
            VERSION_ID="1.56.0",
        ),
        (L4,),
        containerd="2.1.5",
        kubelet=True,
        identity=READ_ONLY,
    ),
    Recipe(
        "nixos-l4",
        "NixOS, with the engines alone asked for: its configuration makes their files",
        system("NixOS 26.05 (Yarara)", "6.18.8", ID="nixos", VERSION_CODENAME="yarara", VERSION_ID="26.05"),
        (L4,),
        docker="28.5.2",
        options=("--only", "runtime"),
    ),
    Recipe(
        "ubuntucore24-l4",
        "Ubuntu Core: the driver comes with the kernel snap's components, the toolkit with the docker snap",
        system("Ubuntu Core 24", "6.8.0-94-generic", ID="ubuntu-core", VERSION_ID="24"),
        (L4,),
        identity=READ_ONLY,
    ),
)
