"""One field of nvidia-smi's XML: its value, a word that says there is none, or a word that says the GPU is sick."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree import ElementTree

# What stands in place of a value, in brackets or not. These say no more than that there is none:
_ABSENT = (
    "N/A",
    "Not Supported",
    "Not Found",
    "Insufficient Permissions",
    "GPU access blocked by the operating system",
    "Requested functionality has been deprecated",
)
# and these that the GPU is sick, the worst first.
_FAULTS = {"GPU is lost": "lost", "GPU requires reset": "reset-required", "Unknown Error": "error", "ERR!": "error"}
_WORST = tuple(_FAULTS)
# Names that users of the host choose.
_OF_USERS = ("processes", "accounted_processes")


def fault_of(gpu: ElementTree.Element) -> tuple[str | None, tuple[str, ...]]:
    """("lost", ("temperature/gpu_temp: GPU is lost", ...)), the worst first; (None, ()) where no field says so."""
    faults = sorted(_faults(gpu), key=lambda fault: _WORST.index(fault[0]))
    return (_FAULTS[faults[0][0]] if faults else None), tuple(where for _, where in faults)


def _faults(gpu: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """(word, "temperature/gpu_temp: ERR!") of every field that has one in place of its value."""
    for group in gpu:
        if group.tag in _OF_USERS:
            continue
        for field in group.iter():
            text = (field.text or "").strip()
            if _bare(text) in _FAULTS:
                path = group.tag if field is group else f"{group.tag}/{field.tag}"
                yield _bare(text), f"{path}: {text}"


def recovery(gpu: ElementTree.Element) -> str | None:
    """What the driver asks for, "None" for nothing: gpu_recovery_action, which 575 brought."""
    return value(gpu, "gpu_recovery_action")


def reset_flags(gpu: ElementTree.Element) -> tuple[str, ...]:
    """Those of gpu_reset_status that are Yes: 535 brought them, and 590 has none of them any more."""
    flags = ("reset_required", "drain_and_reset_recommended")
    return tuple(flag for flag in flags if value(gpu, f"gpu_reset_status/{flag}") == "Yes")


def value(element: ElementTree.Element, path: str, but: str = "") -> str | None:
    """The value; None where a word stands that is none, other than `but`."""
    field = element if path == "." else _first(element, _steps(path))
    text = ((field.text if field is not None else None) or "").strip()
    word = _bare(text)
    absent = not word or word in _FAULTS or (word in _ABSENT and word != but)
    return None if absent else text


def _first(element: ElementTree.Element, steps: tuple[str, ...], at: int = 0) -> ElementTree.Element | None:
    """element.find("a/b"), which takes five times as long for a path as for one name: a GPU has seventy fields."""
    child = element.find(steps[at])
    if child is None or at + 1 == len(steps):
        return child
    if (found := _first(child, steps, at + 1)) is not None:
        return found
    more = (_first(other, steps, at + 1) for other in element.findall(steps[at])[1:])
    return next((found for found in more if found is not None), None)


@cache
def _steps(path: str) -> tuple[str, ...]:
    """`path` is gpunode's own."""
    return tuple(path.split("/"))


def _bare(text: str) -> str:
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text


def version(log: ElementTree.Element, path: str) -> str | None:
    """610 and later print "13.3 [Deprecated; ... Use CUDA UMD Version instead]"."""
    version = re.match(r"[0-9]+(?:\.[0-9]+)+", value(log, path) or "")
    return version[0] if version else None
