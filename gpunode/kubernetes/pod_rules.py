"""The rules of GPUs in a pod that users break, refused before a cluster sees them.

What servers answer is from a kube-apiserver 1.20.2; since then the words have changed and the rules have not.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from gpunode.advice import meant
from gpunode.catalog.versions import first_with
from gpunode.errors import UsageError
from gpunode.model.versions import Release, written

PodMode = Literal["device-plugin", "dra", "alpha"]
POD_MODES: tuple[PodMode, ...] = get_args(PodMode)
ALPHA_GPU = "alpha.kubernetes.io/nvidia-gpu"
DEVICE_PLUGINS: Release = (1, 8)  # device plugins are there (alpha, off)
SEVERAL_ALPHA_GPUS: Release = (1, 6)  # the scheduler counted one GPU of a node before
DRA_PODS: Release = (1, 32)  # resource.k8s.io/v1beta1; what was before has other objects
RUNTIME_CLASSES: Release = (1, 14)  # on by default
WAITS = "later servers accept it, as they do any such name, no node ever offers it, and the pod waits for ever"
LIMITS_ALONE = "GPUs stand in limits alone: a request has to be equal to its limit, and one without a limit is refused."
WHOLE = "They are whole, and no two containers get the same one unless the device plugin is configured so."


def gpu_count(text: str) -> int:
    """Raises UsageError for what is no whole number from 1 to 999."""
    word = text.strip()
    if re.fullmatch(r"[0-9]{1,3}", word) and int(word):
        return int(word)
    if re.fullmatch(r"[0-9]*\.[0-9]+|[0-9]+m", word, re.ASCII):
        raise UsageError(
            f"--gpus {word[:40]}: a pod is given whole GPUs",
            evidence='a server refuses a part of one: "must be an integer"',
            remedy="ask for 1; several pods share a GPU by time slicing or MPS in the device plugin's configuration, "
            "or as MIG instances (--resource nvidia.com/mig-1g.10gb)",
        )
    raise UsageError(f"--gpus {word[:40]!r} is not a whole number from 1 to 999", remedy="give --gpus such a number")


def gpu_resource(text: str) -> str:
    """Raises UsageError for the name of another resource, and for the one of before 1.11."""
    if text == ALPHA_GPU:
        raise UsageError(
            f"--resource {ALPHA_GPU} is the name of clusters before 1.11",
            evidence=WAITS,
            remedy="leave --resource out; --mode alpha is for such a cluster",
        )
    if re.fullmatch(r"nvidia\.com/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", text, re.ASCII):
        return text
    raise UsageError(
        f"--resource {text[:80]!r} is not a resource of NVIDIA's device plugin",
        evidence="they are nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb and the like",
        remedy="kubectl describe node NAME lists the node's under Allocatable",
    )


def pod_mode(text: str | None, release: Release | None) -> PodMode:
    """The one that was asked for, or that a release has. Raises UsageError where the two do not go together."""
    if text is None:
        return "alpha" if release is not None and release < DEVICE_PLUGINS else "device-plugin"
    mode = next((one for one in POD_MODES if one == text), None)
    if mode is None:
        raise UsageError(
            f"--mode {text[:40]!r} is not a choice",
            evidence=f"{meant(text[:40], POD_MODES)}the choices are {', '.join(POD_MODES)}",
            remedy="choose one of them with --mode",
        )
    _refuse(mode, release)
    return mode


def _refuse(mode: PodMode, release: Release | None) -> None:
    major, minor, *_ = first_with("kubelet", "no-alpha-gpus")
    last = major, minor
    if mode == "alpha" and (release is None or release >= last):
        raise UsageError(
            f"--mode alpha: {ALPHA_GPU} is for clusters before {written(last)}",
            evidence=WAITS,
            remedy=f"leave --mode out, or say which cluster it is with --kubernetes ({written((1, 7))}, ...)",
        )
    if mode == "device-plugin" and release is not None and release < DEVICE_PLUGINS:
        raise UsageError(
            f"Kubernetes {written(release)} has no device plugins",
            evidence=f"they came with {written(DEVICE_PLUGINS)}",
            remedy="leave --mode out: the pod is then one of before (--mode alpha)",
        )
    if mode == "dra" and release is not None and release < DRA_PODS:
        raise UsageError(
            f"Kubernetes {written(release)} has no DRA that NVIDIA's driver serves",
            evidence=f"resource.k8s.io/v1beta1 came with {written(DRA_PODS)}, v1 with 1.34",
            remedy="leave --mode dra out",
        )


def alpha_count(gpus: int, release: Release) -> int:
    """Raises UsageError for several GPUs of a cluster that counts one of each node."""
    if gpus > 1 and release < SEVERAL_ALPHA_GPUS:
        raise UsageError(
            f"--gpus {gpus}: Kubernetes {written(release)} gives a pod one GPU at most",
            evidence=f"several of a node are counted from {written(SEVERAL_ALPHA_GPUS)} on",
            remedy="leave --gpus out",
        )
    return gpus


def visible_devices(text: str) -> str:
    """A value of NVIDIA_VISIBLE_DEVICES. Raises UsageError."""
    one = r"[0-9]{1,3}|(GPU|MIG)-[0-9A-Za-z/-]{1,80}|[0-9]{1,3}:[0-9]{1,3}"
    if re.fullmatch(rf"all|none|void|(?:{one})(?:,(?:{one}))*", text, re.ASCII) and len(text) <= 2000:
        return text
    raise UsageError(
        f"--visible-devices {text[:60]!r} is not a value of NVIDIA_VISIBLE_DEVICES",
        evidence="the forms are: all, none, void, numbers or UUIDs with commas (0,1 or GPU-...), 0:1 for MIG",
        remedy="choose one of them; nvidia-smi -L lists the node's",
    )


def class_name(text: str, release: Release | None) -> str:
    """Raises UsageError for what is no name of a RuntimeClass, or where there are none."""
    if release is not None and release < RUNTIME_CLASSES:
        raise UsageError(
            f"Kubernetes {written(release)} has no RuntimeClass that is on by default",
            evidence=f"it is from {written(RUNTIME_CLASSES)} on",
            remedy="leave --runtime-class out: nvidia as the engine's default runtime serves every pod",
        )
    if re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", text, re.ASCII):
        return text
    raise UsageError(
        f"--runtime-class {text[:60]!r} is not the name of an object",
        evidence="it has small letters, digits, hyphens and dots",
        remedy="kubectl get runtimeclass lists them",
    )


def image_name(text: str) -> str:
    """A reference of an image, as far as it can be told from a typing error. Raises UsageError."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,500}", text, re.ASCII):
        return text
    raise UsageError(
        f"--image {text[:80]!r} is not an image",
        evidence="its form is registry.example/name:tag",
        remedy="mirror the image that is printed without --image, and name the mirror's",
    )


def product_name(text: str, mode: PodMode) -> str:
    """Raises UsageError for what no GPU is called, so that the pod would wait for ever."""
    if mode == "dra" and re.match(r"(NVIDIA|Tesla|Quadro|GRID)-", text):
        raise UsageError(
            f"--product {text[:80]!r} is a label's value",
            evidence="the DRA driver publishes names as nvidia-smi prints them: NVIDIA H100 80GB HBM3",
            remedy="write the name with its blanks; nvidia-smi -L lists the host's",
        )
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._/()+-]{0,62}", text, re.ASCII):
        return text
    raise UsageError(
        f"--product {text[:80]!r} is not the name of a GPU",
        evidence="names have letters, digits, blanks and hyphens: NVIDIA H100 80GB HBM3, or NVIDIA-H100-80GB-HBM3",
        remedy="nvidia-smi -L lists the host's; gpunode k8s labels has it as nvidia.com/gpu.product",
    )
