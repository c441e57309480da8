"""The options of setup and plan: what a host should become. A file of its own: other verbs start without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from gpunode.cli.options.groups import (
    CdiFlag,
    CtkSetFlag,
    KubernetesModeFlag,
    NoDefaultFlag,
    RuntimeFlag,
    SpecFlag,
    ToolkitFlag,
    wanted,
)
from gpunode.values import dataclass


@dataclass(frozen=True)
class SpecOptions:
    """What setup makes of a host; a flag that was not typed is None and leaves the spec's value."""

    spec: SpecFlag = None
    lock: Annotated[
        Path | None, wanted("--lock", metavar="FILE", help="As one node has it, by `gpunode lock`; over --spec.")
    ] = None
    bundle: Annotated[
        Path | None, wanted("--bundle", metavar="FILE", help="All packages come from this file: no network needed.")
    ] = None
    driver: Annotated[
        str | None,
        wanted("--driver", metavar="auto|none|BRANCH|VERSION", help="Driver: 580, or 580.178.04; none removes it."),
    ] = None
    flavour: Annotated[
        str | None,
        wanted("--flavour", "--flavor", metavar="auto|open|proprietary", help="Kernel module type of the driver."),
    ] = None
    driver_source: Annotated[
        str | None, wanted("--driver-source", metavar="auto|distro|cuda|local", help="Where the driver comes from.")
    ] = None
    toolkit: ToolkitFlag = None
    toolkit_channel: Annotated[
        str | None, wanted("--toolkit-channel", metavar="stable|experimental", help="Its repository.")
    ] = None
    ctk_set: CtkSetFlag = None
    runtime: RuntimeFlag = None
    no_default: NoDefaultFlag = False
    cdi: CdiFlag = False
    kubernetes_mode: KubernetesModeFlag = None
    only: Annotated[
        str | None, wanted("--only", metavar="PARTS", help="driver,toolkit,runtime,kubernetes: these parts.")
    ] = None
    reboot: Annotated[
        str | None, wanted("--reboot", metavar="never|if-needed", help="Reboot where a step needs it (default never).")
    ] = None
    hold: Annotated[bool | None, wanted("--hold/--no-hold", help="Pin the packages' versions (default).")] = None
    cuda: Annotated[
        str | None, wanted("--cuda", metavar="none|VERSION", help="CUDA toolkit in addition to the driver: 13.0.")
    ] = None
    mirror: Annotated[
        str | None,
        wanted("--mirror", metavar="URL|DIRECTORY", help="A mirror of NVIDIA's repositories, or a local one."),
    ] = None
    trust_key: Annotated[
        list[str] | None,
        wanted("--trust-key", metavar="FINGERPRINT", help="One more repository key, 40 hex digits. Repeatable."),
    ] = None
    proxy: Annotated[str | None, wanted("--proxy", metavar="URL", help="For the package manager.")] = None
    allow_no_gpu: Annotated[bool, wanted("--allow-no-gpu", help="No GPU required: building an image.")] = False
    allow_container_restart: Annotated[
        bool,
        wanted("--allow-container-restart", help="Restart dockerd where it needs it, though its containers stop."),
    ] = False
    mig: Annotated[
        list[str] | None,
        wanted("--mig", metavar="GPUS=PROFILES", help="all=1g.10gb:7, 2330=3g.40gb:2, all=off. Repeatable."),
    ] = None
    allow_gpu_in_use: Annotated[
        bool, wanted("--allow-gpu-in-use", help="The driver may be replaced while programs use the GPUs.")
    ] = False
