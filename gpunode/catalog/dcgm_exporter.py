"""NVIDIA's DCGM exporter: its image, and the metrics of a dashboard, as catalog/dcgm_exporter.yaml lists them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.values import dataclass

FILE = "dcgm_exporter.yaml"
REPOSITORY = "nvcr.io/nvidia/k8s/dcgm-exporter"


@dataclass(frozen=True)
class ExporterRelease:
    tag: str  # "4.5.3-4.8.2": DCGM's version, then the exporter's
    date: str  # "2026-05-06"
    source: str
    checked: str
    grade: str

    @property
    def dcgm(self) -> str:
        return self.tag.partition("-")[0]

    @property
    def exporter(self) -> str:
        return self.tag.partition("-")[2]

    @property
    def image(self) -> str:
        return f"{REPOSITORY}:{self.tag}-distroless"


@dataclass(frozen=True)
class Counter:
    name: str  # "DCGM_FI_DEV_GPU_UTIL"
    title: str
    unit: str  # as Grafana calls it: "percent", "celsius"
    most: int | None  # the end of its scale
    group: str
    source: str
    checked: str
    grade: str


@cache
def newest_exporter() -> ExporterRelease:
    """Raises UsageError that names row and key of a fault in the file."""
    return [_release(row) for row in rows(FILE, "releases", "release")][-1]


@cache
def dashboard_counters() -> Sequence[Counter]:
    """In the dashboard's order. Raises UsageError that names row and key of a fault in the file."""
    return tuple(_counter(row) for row in rows(FILE, "counters", "counter"))


def _release(row: Row) -> ExporterRelease:
    tag = row.text("release")
    if not re.fullmatch(r"\d+\.\d+\.\d+-\d+\.\d+\.\d+", tag, re.ASCII):
        raise row.fault("release", f"{tag!r} is not a tag such as 4.5.3-4.8.2")
    found = ExporterRelease(tag, row.day("date"), *row.provenance())
    row.done()
    return found


def _counter(row: Row) -> Counter:
    name = row.text("counter")
    if not re.fullmatch(r"DCGM_[A-Z0-9_]+", name, re.ASCII):
        raise row.fault("counter", f"{name!r} is no metric of DCGM's")
    shown = (row.text("title"), row.text("unit"), row.maybe_number("most"), row.text("group"))
    found = Counter(name, *shown, *row.provenance())
    row.done()
    return found
