"""The labels that a MIG strategy adds or replaces, as GPU feature discovery does (internal/lm/mig-strategy.go)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from gpunode.kubernetes.label_sharing import Share, Unknown, share_of
from gpunode.kubernetes.label_values import legal_value, product_value
from gpunode.model.kubernetes import PluginConfig
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.regex import regex

MigStrategy = Literal["none", "single", "mixed"]
MIG_STRATEGIES: tuple[MigStrategy, ...] = get_args(MigStrategy)
# "1g.10gb", "1c.3g.40gb", "1g.10gb+me": compute slices where they are fewer, slices of the GPU, memory, attributes
_PROFILE = regex(r"(?:([1-9])c\.)?([1-9])g\.[0-9]{1,4}gb(?:[+.-][a-z.+-]{1,20})?", re.ASCII)
_ATTRIBUTES = "its memory, multiprocessors and engines are known to NVML alone"


def mig_labels(
    smi: SmiFacts | None, gpus: Sequence[SmiGpu], strategy: MigStrategy, config: PluginConfig | Unknown
) -> Mapping[str, str | Unknown]:
    """Names below nvidia.com/ -> their values, or why they have none. `gpus`: the model that the labels speak of.

    `config`: the device plugin's, by which instances are shared too.
    """
    if strategy == "none":
        return {}
    labels: dict[str, str | Unknown] = {"mig.strategy": strategy}
    everyone = smi.gpus if smi else ()
    partitioned = [gpu for gpu in everyone if gpu.mig_mode == "Enabled"]
    if not partitioned or not gpus:
        return labels
    if strategy == "single":
        return {**labels, **_single(everyone, partitioned, share_of(config, "gpu"))}
    for profile, count in Counter(p for gpu in partitioned for p in gpu.mig_profiles).items():
        name = f"mig-{_resource(profile)}"
        labels |= _instances(name, partitioned[0].name, profile, count, share_of(config, name))
    return labels


def _single(
    everyone: Sequence[SmiGpu], partitioned: Sequence[SmiGpu], share: Share | Unknown
) -> Mapping[str, str | Unknown]:
    profiles = Counter(profile for gpu in partitioned for profile in gpu.mig_profiles)
    whole = len(partitioned) == len(everyone) and all(gpu.mig_profiles for gpu in partitioned)
    if whole and len(profiles) == 1:
        (profile, count), *_ = profiles.items()
        return _instances("gpu", partitioned[0].name, profile, count, share)
    # What feature discovery says of layouts that this strategy cannot offer: the plugin then has no devices.
    product = legal_value(f"{product_value(partitioned[0].name)}-MIG-INVALID")
    zero = dict.fromkeys(("gpu.count", "gpu.replicas", "gpu.memory"), "0")
    return {"gpu.product": product, **zero, "gpu.sharing-strategy": ""}


def _instances(
    resource: str, product: str, profile: str, count: int, share: Share | Unknown
) -> Mapping[str, str | Unknown]:
    name = f"{product_value(product)}-MIG-{_resource(profile)}"
    labels: dict[str, str | Unknown] = {
        f"{resource}.product": legal_value(name) if isinstance(share, Unknown) else share.product(name),
        f"{resource}.count": str(count),
        f"{resource}.replicas": share if isinstance(share, Unknown) else str(share.replicas),
        f"{resource}.sharing-strategy": share if isinstance(share, Unknown) else share.strategy,
        f"{resource}.memory": Unknown(_ATTRIBUTES),
    }
    if slices := _PROFILE.fullmatch(profile):
        labels[f"{resource}.slices.gi"] = slices[2]
        labels[f"{resource}.slices.ci"] = slices[1] or slices[2]
    return labels


def _resource(profile: str) -> str:
    """ "1g.10gb.me": a plus is no sign of a resource's name."""
    return legal_value(profile.replace("+", "."))
