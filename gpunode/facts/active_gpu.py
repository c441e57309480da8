"""What the GPUs themselves did in an active test: a kernel through libcuda, and DCGM's diagnosis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpunode.facts.wire import Section, Sections
from gpunode.foreign import NotRead, read_json
from gpunode.model.active import CudaFacts, CudaGpu, DcgmFacts, DcgmResult
from gpunode.regex import regex

MOST_RESULTS = 200  # of a diagnosis; level 4 of 16 GPUs has fewer
_ADDRESS = regex(r"(?:0000)?([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])")
_FAILED = regex(r"(cu\w+) ([0-9]{1,9}) ([A-Z_0-9]+|-)")
# The documents of DCGM 4 and of 3 and older.
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")


def parse_cuda(section: Section | None) -> CudaFacts:
    """The lines of shell/active/cuda.sh:

    sum 0000:41:00.0 ok
    memory 0000:41:00.0 67108864 0
    failed 0000:41:00.0 cuCtxCreate_v2 802 CUDA_ERROR_SYSTEM_NOT_READY
    devices 1
    """
    if section is None or section.rc is None:
        return CudaFacts(unknown=(section.unread if section else None) or "it was not reached")
    gpus: dict[str, CudaGpu] = {}
    devices = None
    for line in section.text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "missing":
            return CudaFacts(unknown=f"libcuda cannot be loaded: {rest[:300]}")
        if word == "devices" and rest.isdecimal() and len(rest) < 5:
            devices = int(rest)
        if gpu := _gpu(word, rest, gpus):
            gpus[gpu.address] = gpu
    if not gpus and devices is None:
        first = next(iter(section.text.splitlines()), f"exit code {section.rc}")
        return CudaFacts(unknown=f"the test ended without an answer: {first[:300]}")
    whole = devices is not None or "" in gpus
    return CudaFacts(tuple(gpus.values()), devices, "" if whole else f"the test ended early, exit code {section.rc}")


def _gpu(word: str, rest: str, known: Mapping[str, CudaGpu]) -> CudaGpu | None:
    """The GPU that a line is about, with what the line says."""
    where, _, said = rest.partition(" ")
    match = _ADDRESS.fullmatch(where)
    if where != "-" and match is None:
        return None
    address = match[1].lower() if match else ""
    before = known.get(address, CudaGpu(address))
    if word == "sum" and re.fullmatch("ok|wrong [0-9]{1,9} of [0-9]{1,9}", said):
        return replace(before, sums=said)
    if word == "memory" and (numbers := re.fullmatch("([0-9]{1,12}) ([0-9])", said)):
        return replace(before, memory_bytes=int(numbers[1]), memory_wrong=int(numbers[2]))
    if word == "failed" and (failed := _FAILED.fullmatch(said)):
        shown = f"{failed[1]}: {failed[3]} ({failed[2]})" if failed[3] != "-" else f"{failed[1]}: error {failed[2]}"
        return replace(before, failed=shown, code=int(failed[2]))
    return None


def parse_dcgm(sections: Sections, level: int) -> DcgmFacts:
    """What `dcgmi diag -r LEVEL -j` printed: one object, which may follow other lines."""
    section = sections.commands.get("dcgm")
    if section is None or section.rc is None:
        return DcgmFacts(level, unknown=(section.unread if section else None) or "it was not reached")
    begin = section.text.find("{")
    try:
        document = read_json(section.text[begin:]) if begin >= 0 else None
    except NotRead as error:
        return DcgmFacts(level, unknown=f"its answer is no JSON: {error}")
    if not isinstance(document, dict):
        first = next((line.strip() for line in section.text.splitlines() if line.strip()), "it printed nothing")
        return DcgmFacts(level, unknown=first[:300])
    none: dict[str, Any] = {}
    root = next((document[name] for name in _ROOTS if isinstance(document.get(name), dict)), none)
    results = tuple(_results(root))[:MOST_RESULTS]
    if not results:
        said = root.get("runtime_error") or document.get("runtime_error") or "its answer has no result of a test"
        return DcgmFacts(level, unknown=str(said)[:300])
    return DcgmFacts(level, results)


def _results(root: Mapping[str, Any]) -> Iterator[DcgmResult]:
    for category in _objects(root.get("test_categories")):
        for test in _objects(category.get("tests")):
            name = str(test.get("name", "a test"))[:80]
            found = [_result(name, one) for one in _objects(test.get("results"))]
            yield from found
            summary = test.get("test_summary")
            if isinstance(summary, dict):
                whole = _result(name, summary)
                if whole.status not in {one.status for one in found}:
                    yield whole


def _result(name: str, one: Mapping[str, Any]) -> DcgmResult:
    where = str(one.get("gpu_ids", one.get("gpu_id", "")))
    entity = one.get("entity_id")
    if isinstance(entity, int):
        where = f"{one.get('entity_group', 'entity')} {entity}"
    elif where:
        where = f"GPU {where}"
    warnings = one.get("warnings")
    said = warnings if isinstance(warnings, list) else [warnings] if warnings else []
    texts = [w.get("warning", "") if isinstance(w, dict) else w for w in said]
    severities = {w.get("error_severity") for w in said if isinstance(w, dict)}
    return DcgmResult(
        name,
        where[:40],
        str(one.get("status", "")).lower()[:20],
        tuple(str(text)[:300] for text in texts if text)[:4],
        frozenset(s for s in severities if type(s) is int),
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
