"""`nvidia-smi -q -x`: the only query of the GPUs that goes through the driver."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from gpunode.model.facts import SmiFacts, SmiGpu

_ABSENT = ("", "N/A", "[N/A]", "Unknown Error", "GPU access blocked by the operating system")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse_smi(text: str, code: int, instances: str = "") -> SmiFacts:
    """The answer and its exit code. Fields of a missing or garbled answer are None; `message` then has what came.

    <nvidia_smi_log><driver_version>580.95.05</driver_version><cuda_version>13.0</cuda_version>
      <gpu id="00000000:41:00.0"><product_name>NVIDIA H100 80GB HBM3</product_name> ...
    """
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if code != 0 or "<nvidia_smi_log" not in text:
        return SmiFacts(code, message=first[:300])
    # The DTD line names a file that no parser should fetch; entities are not used.
    if "<!ENTITY" in text:
        return SmiFacts(code, message="nvidia-smi's XML declares entities; it was not read")
    try:
        log = ElementTree.fromstring(text[text.index("<nvidia_smi_log") :])
    except ElementTree.ParseError as fault:
        return SmiFacts(code, message=f"nvidia-smi's XML does not parse: {fault}")
    partitions = mig_instances(instances)
    gpus = tuple(_gpu(index, gpu, partitions.get(index, ())) for index, gpu in enumerate(log.findall("gpu")))
    return SmiFacts(code, "", _text(log, "driver_version"), _first_word(_text(log, "cuda_version")), gpus)


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


def _gpu(index: int, gpu: ElementTree.Element, instances: tuple[tuple[str, str], ...]) -> SmiGpu:
    persistence = _text(gpu, "persistence_mode")
    return SmiGpu(
        index=index,
        pci_address=short_address(gpu.get("id", "")),
        name=_text(gpu, "product_name") or "",
        uuid=_text(gpu, "uuid"),
        memory_total_bytes=_bytes(_text(gpu, "fb_memory_usage/total")),
        persistence=None if persistence is None else persistence == "Enabled",
        mig_mode=_text(gpu, "mig_mode/current_mig"),
        mig_pending=_text(gpu, "mig_mode/pending_mig"),
        mig_profiles=tuple(profile for profile, _ in instances),
        mig_uuids=tuple(uuid for _, uuid in instances if uuid),
        ecc_mode=_text(gpu, "ecc_mode/current_ecc"),
        fabric_state=_raw(gpu, "fabric/state"),
        fabric_status=_raw(gpu, "fabric/status"),
    )


def _raw(element: ElementTree.Element, path: str) -> str | None:
    text = element.findtext(path)
    return None if text is None else text.strip()


def _text(element: ElementTree.Element, path: str) -> str | None:
    text = _raw(element, path)
    return None if text in _ABSENT else text


def _first_word(text: str | None) -> str | None:
    # 610 and later print "13.3 [Deprecated; ... Use CUDA UMD Version instead]".
    return text.split()[0] if text else None


def _bytes(text: str | None) -> int | None:
    """ "81559 MiB" in bytes."""
    match = re.fullmatch(r"([0-9]{1,15}) (B|KiB|MiB|GiB)", text or "")
    return int(match[1]) * _UNITS[match[2]] if match else None
