"""`nvidia-smi -q -x`: the only query of the GPUs that goes through the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpunode.facts.smi_fields import fault_of, recovery, reset_flags, value, version
from gpunode.facts.smi_health import health_of
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.regex import regex

if TYPE_CHECKING:
    from xml.etree import ElementTree

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_END = "</nvidia_smi_log>"
# Spelt "GPU 0000:02:00.0: ", "GPU0000:02:00.0: " or, by 610, "GPU1: 0000:02:00.0: "; 610 then goes on with the others.
_ADDRESS = "[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}[.][0-9]"
_NO_HANDLE = regex(
    "Unable to determine the device handle for GPU ?"
    f"(?:(?P<index>[0-9]{{1,3}}): )?(?:(?P<address>{_ADDRESS}): )?(?P<why>.*)"
)


def parse_smi(text: str, code: int, instances: str = "") -> SmiFacts:
    """The answer and its exit code. Fields of a missing or garbled answer are None; `message` then has what came.

    <nvidia_smi_log><driver_version>580.95.05</driver_version><cuda_version>13.0</cuda_version>
      <gpu id="00000000:41:00.0"><product_name>NVIDIA H100 80GB HBM3</product_name> ...

    Lines about a GPU that it cannot open stand before the XML, or alone; a warning and its exit code may come with it.
    """
    text = "\n".join(map(_without_name, text.split("\n")))
    xml, others = _parts(text)
    first = next((line.strip() for line in others.splitlines() if line.strip()), "")[:300]
    closed = tuple(_without_handle(others))
    if not xml:
        return SmiFacts(code, first, gpus=closed)
    # The DTD line names a file that no parser should fetch; entities are not used.
    if "<!ENTITY" in text:
        return SmiFacts(code, message="nvidia-smi's XML declares entities; it was not read")
    from xml.etree.ElementTree import ParseError, fromstring  # a host without an answer has no use for it

    try:
        log = fromstring(xml.encode("utf-8", "replace"))  # bytes of the answer that were no UTF-8 are surrogates
    except ParseError as fault:
        return SmiFacts(code, message=f"nvidia-smi's XML does not parse: {fault}", gpus=closed)
    kmd, umd = version(log, "kmd_version"), version(log, "cuda_umd_version")
    return SmiFacts(
        code,
        first if code else "",
        version(log, "driver_version") or kmd,
        version(log, "cuda_version") or umd,
        _numbered([_gpu(gpu) for gpu in log.findall("gpu")], closed, mig_instances(instances)),
        kmd,
        umd,
    )


def mig_instances(text: str) -> dict[int, tuple[tuple[str, str], ...]]:
    """GPU index -> (profile, UUID) of its instances, from `nvidia-smi -L`; "" for a UUID that is not printed:

    GPU 0: NVIDIA H200 (UUID: GPU-...)
      MIG 2g.35gb     Device  2: (UUID: MIG-...)
    """
    found: dict[int, list[tuple[str, str]]] = {}
    index = -1
    for line in text.splitlines():
        gpu, mig = re.match(r"GPU ([0-9]{1,9}):", line), re.match(r"\s+MIG (\S+)\s", line)
        if gpu:
            index = int(gpu[1])
        elif mig:
            uuid = re.search(r"\(UUID: (MIG-[^\s()]+)\)", line)
            found.setdefault(index, []).append((mig[1], uuid[1] if uuid else ""))
    return {index: tuple(instances) for index, instances in found.items()}


def short_address(bus_id: str) -> str:
    """nvidia-smi's "00000000:41:00.0" as sysfs writes it: "0000:41:00.0"."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:].zfill(4)}:{rest}"


def _without_name(line: str) -> str:
    """A line without the name of a process. nvidia-smi prints it as its user chose it: "&", "<", bytes of any kind."""
    head, opened, rest = line.partition("<process_name>")
    _, closed, tail = rest.rpartition("</process_name>")
    return head + tail if opened and closed else line


def _parts(text: str) -> tuple[str, str]:
    """The XML without its head, "" where there is none, and what stands around it."""
    start = text.find("<nvidia_smi_log")
    if start < 0:
        return "", text
    end = text.rfind(_END)
    end = len(text) if end < 0 else end + len(_END)
    around = (line for line in (text[:start] + text[end:]).splitlines() if not line.lstrip().startswith("<"))
    return text[start:end], "\n".join(around)


def _without_handle(text: str) -> Iterator[SmiGpu]:
    """GPUs that nvidia-smi cannot open: their place and what it says, and no value."""
    for match in filter(None, map(_NO_HANDLE.match, text.splitlines())):
        yield SmiGpu(
            index=int(match["index"]) if match["index"] else -1,
            pci_address=short_address(match["address"]) if match["address"] else "",
            name="",
            fault="reset-required" if "requires reset" in match["why"] else "lost",
            fault_fields=(match[0].strip()[:300],),
        )


def _numbered(
    seen: Sequence[SmiGpu], closed: Sequence[SmiGpu], partitions: dict[int, tuple[tuple[str, str], ...]]
) -> tuple[SmiGpu, ...]:
    """All GPUs with the indexes that nvidia-smi knows them by: bus order, those that it cannot open included."""
    there = {gpu.pci_address for gpu in seen}
    more = [gpu for gpu in closed if gpu.pci_address not in there]
    gpus = list(seen)
    if more:
        gpus = sorted((*seen, *(gpu for gpu in more if gpu.pci_address)), key=lambda gpu: gpu.pci_address)
    for gpu in (gpu for gpu in more if not gpu.pci_address):
        gpus.insert(gpu.index if gpu.index >= 0 else len(gpus), gpu)
    return tuple(_with_instances(replace(gpu, index=n), partitions.get(n, ())) for n, gpu in enumerate(gpus))


def _with_instances(gpu: SmiGpu, instances: tuple[tuple[str, str], ...]) -> SmiGpu:
    return replace(
        gpu,
        mig_profiles=tuple(profile for profile, _ in instances),
        mig_uuids=tuple(uuid for _, uuid in instances if uuid),
    )


def _gpu(gpu: ElementTree.Element) -> SmiGpu:
    persistence = value(gpu, "persistence_mode")
    fault, fields = fault_of(gpu)
    return SmiGpu(
        index=-1,
        pci_address=short_address(gpu.get("id", "")),
        name=value(gpu, "product_name") or "",
        uuid=value(gpu, "uuid"),
        memory_total_bytes=_bytes(value(gpu, "fb_memory_usage/total")),
        persistence=None if persistence is None else persistence == "Enabled",
        mig_mode=value(gpu, "mig_mode/current_mig"),
        mig_pending=value(gpu, "mig_mode/pending_mig"),
        ecc_mode=value(gpu, "ecc_mode/current_ecc"),
        fabric_state=value(gpu, "fabric/state", but="N/A"),
        fabric_status=value(gpu, "fabric/status", but="N/A"),
        fault=fault,
        fault_fields=fields,
        recovery=recovery(gpu),
        reset_flags=reset_flags(gpu),
        health=health_of(gpu),
        fabric_health=_words_of(gpu.find("fabric/health")),
    )


def _words_of(group: ElementTree.Element | None) -> Mapping[str, str]:
    """Each of its fields that has a word of nvidia-smi's, "N/A" among them."""
    fields = ((field.tag, value(field, ".", but="N/A")) for field in (group if group is not None else ()))
    return MappingProxyType({tag: word for tag, word in fields if word is not None})


def _bytes(text: str | None) -> int | None:
    """ "81559 MiB" in bytes."""
    match = re.fullmatch(r"([0-9]{1,15}) (B|KiB|MiB|GiB)", text or "")
    return int(match[1]) * _UNITS[match[2]] if match else None
