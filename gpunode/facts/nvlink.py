"""`nvidia-smi nvlink` and `nvidia-smi topo`: which links of each GPU are up, what they count, and who reaches whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from gpunode.model.gpu_health import LinkErrors, NvLinks
from gpunode.regex import regex

_GPU = regex(r"GPU [0-9]{1,3}: .{1,120} \(UUID: (?P<uuid>GPU-[0-9a-f-]{36})\)", re.A)
_STATE = regex(r"Link (?P<link>[0-9]{1,2}): (?:(?P<down><inactive>)|[0-9.]{1,8} GB/s)", re.A)
_COUNT = regex(r"Link (?P<link>[0-9]{1,2}): (?P<kind>Replay|Recovery|CRC) Errors: (?P<count>[0-9]{1,19})", re.A)
_MOST_GPUS = 64
_ROW = regex(r"GPU(?P<index>[0-9]{1,2})(?P<words>(?:\s+[A-Z]{1,4}){1,64})", re.A)
_ALL_DOWN = "all links are inactive"


def parse_nvlinks(states: str, errors: str) -> dict[str, NvLinks]:
    """GPU's UUID -> its links; of `nvidia-smi nvlink -s` and `nvidia-smi nvlink -e`. A GPU without NVLink is not in it,
    nor one in MIG mode, of which nvidia-smi gives no state:

    GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)
             Link 0: 26.562 GB/s
             Link 1: <inactive>

    GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)
             Link 0: Replay Errors: 0
             Link 0: Recovery Errors: 0
             Link 0: CRC Errors: 0

    Of a GPU none of whose links is up: NVML: Unable to retrieve NVLink information as all links are inActive
    """
    up: dict[str, set[int]] = {}
    down: dict[str, set[int]] = {}
    for uuid, line in _of_gpus(states):
        state = _STATE.match(line)
        if state:
            (down if state["down"] else up).setdefault(uuid, set()).add(int(state["link"]))
        elif _ALL_DOWN in line.lower():
            down.setdefault(uuid, set())
    counted: dict[str, list[LinkErrors]] = {}
    for uuid, line in _of_gpus(errors):
        if found := _counted(line):
            counted.setdefault(uuid, []).append(found)
    return {
        uuid: NvLinks(len(up.get(uuid, ())), tuple(sorted(down.get(uuid, ()))), tuple(counted.get(uuid, ())))
        for uuid in {**up, **down}
    }


@lru_cache(maxsize=4096)  # an HGX node has 432 such lines, most of them with a zero, and so has each of its fleet
def _counted(line: str) -> LinkErrors | None:
    count = _COUNT.match(line)
    return LinkErrors(int(count["link"]), count["kind"], int(count["count"])) if count else None


def _of_gpus(text: str) -> Iterator[tuple[str, str]]:
    """(UUID, line below it)."""
    uuid = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("GPU ") and (gpu := _GPU.match(line)):
            uuid = gpu["uuid"]
        elif uuid is not None:
            yield uuid, line[:200]


def parse_peers(text: str) -> tuple[tuple[str, ...], ...]:
    """For each GPU in turn what it can read of each; () for what is no square. Of `nvidia-smi topo -p2p r`:

            GPU0    GPU1
     GPU0   X       OK
     GPU1   CNS     X

    Legend:
      X    = Self
    """
    rows: list[tuple[str, ...]] = []
    for line in text.split("\n"):
        row = _ROW.fullmatch(line[:1024].strip())
        if row and int(row["index"]) == len(rows) < _MOST_GPUS:
            rows.append(tuple(row["words"].split()))
    square = all(len(row) == len(rows) and row[n] == "X" for n, row in enumerate(rows))
    return tuple(rows) if square else ()
