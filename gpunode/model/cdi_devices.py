"""The GPUs that a CDI specification names, held against those that are here."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.regex import regex

# The device plugin's (k8s.device-plugin.nvidia.com/gpu) and the GPU Operator's (management.nvidia.com/gpu) are others.
KIND = "nvidia.com/gpu"
# nvidia-cdi-refresh writes it, and no package of the toolkit removes it (its packaging, to 1.20).
REFRESHED = "/var/run/cdi/nvidia.yaml"
# nvidia-ctk's names by --device-name-strategy: index (0, MIG 0:1), type-index (gpu0, mig0:1), uuid.
_INDEX = regex(r"(?:gpu|mig)?([0-9]{1,9})(:[0-9]{1,9})?")
_UUIDS = ("GPU-", "MIG-")


class Difference(NamedTuple):
    gone: tuple[str, ...]  # it names them, and they are not here
    missing: tuple[str, ...]  # they are here, and a specification with the device `all` does not name them

    def __str__(self) -> str:
        gone = f"{', '.join(self.gone[:3])} not here" if self.gone else ""
        missing = f"{', '.join(self.missing[:3])} not in it" if self.missing else ""
        return ", ".join(filter(None, (gone, missing)))


def kind_of(text: str) -> str | None:
    """ "nvidia.com/gpu" of a specification in YAML or JSON; None where it has none."""
    found = re.search(r"""^[\s{"']*kind["']?\s*:\s*["']?([\w.-]+/[\w.-]+)""", text, re.MULTILINE) or re.search(
        r'"kind"\s*:\s*"([^"]+)"', text
    )
    return found[1] if found else None


def names(text: str) -> tuple[str, ...]:
    """Names in a specification; deeper ones (hooks have no name, but an annotation may) do no harm in a comparison."""
    return tuple(re.findall(r"""(?:^[ \t]*(?:-[ \t]*)?|[{,]\s*"?)name"?\s*:\s*["']?([^"'\s,}]+)""", text, re.MULTILINE))


def is_of_ctk(name: str) -> bool:
    """Whether nvidia-ctk names a device so, by any of its strategies; another name is somebody's own."""
    return name == "all" or name.startswith(_UUIDS) or _INDEX.fullmatch(name) is not None


def difference(smi: SmiFacts | None, text: str) -> Difference | None:
    """What a specification says otherwise than nvidia-smi; None where they agree, or nvidia-smi did not answer.

    A GPU in MIG mode is named by its instances only. Names of another kind (somebody's own) are no matter of ours; a
    file without `all` may leave GPUs out on purpose. None too while a GPU is lost: what the file says of it is right
    again after a power cycle, and nvidia-ctk writes no other until then.
    """
    if smi is None or not smi.answered or not smi.gpus or smi.lost:
        return None
    named = names(text)
    gone: list[str] = []
    missing: list[str] = []
    for have, here in ((_indexes(named), _indexes_of(smi.gpus)), (_uuids(named), _uuids_of(smi.gpus))):
        if have and here is not None:
            gone += sorted(have - here)
            missing += sorted(here - have) if "all" in named else ()
    return Difference(tuple(gone), tuple(missing)) if gone or missing else None


def _indexes(named: tuple[str, ...]) -> Counter[str]:
    """ "0" for a GPU, "0:MIG" for each instance: their own indexes may have gaps. Two strategies may name it twice."""
    found = {one.groups() for one in map(_INDEX.fullmatch, named) if one}
    return Counter(f"{gpu}:MIG" if instance else gpu for gpu, instance in found)


def _indexes_of(gpus: tuple[SmiGpu, ...]) -> Counter[str]:
    here = Counter[str]()
    for gpu in gpus:
        here.update([f"{gpu.index}:MIG"] * len(gpu.mig_profiles) if _sliced(gpu) else [str(gpu.index)])
    return here


def _uuids(named: tuple[str, ...]) -> Counter[str]:
    return Counter({name: 1 for name in named if name.startswith(_UUIDS)})


def _uuids_of(gpus: tuple[SmiGpu, ...]) -> Counter[str] | None:
    """None where nvidia-smi told not all of them, or in the form with slashes of old drivers."""
    here: list[str] = []
    for gpu in gpus:
        mine = gpu.mig_uuids if _sliced(gpu) else filter(None, (gpu.uuid,))
        here += mine
    wanted = sum(len(gpu.mig_profiles) if _sliced(gpu) else 1 for gpu in gpus)
    return Counter(here) if len(here) == wanted and not any("/" in uuid for uuid in here) else None


def _sliced(gpu: SmiGpu) -> bool:
    return gpu.mig_mode == "Enabled"
