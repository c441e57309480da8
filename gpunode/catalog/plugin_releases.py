"""Releases of NVIDIA's Kubernetes device plugin, as catalog/plugin_releases.yaml lists them."""

from __future__ import annotations

import re
from functools import cache

from gpunode.catalog.rows import Row, rows
from gpunode.model.versions import three_numbers
from gpunode.values import dataclass

REPOSITORY = "nvcr.io/nvidia/k8s-device-plugin"


@dataclass(frozen=True)
class PluginRelease:
    tag: str  # "v0.20.0"
    date: str  # "2026-08-19"
    source: str
    checked: str
    grade: str

    @property
    def numbers(self) -> tuple[int, ...]:
        """(0, 20, 0)."""
        return three_numbers(self.tag) or ()

    @property
    def image(self) -> str:
        return f"{REPOSITORY}:{self.tag}"


@cache
def plugin_releases() -> tuple[PluginRelease, ...]:
    """Oldest first. Raises UsageError that names row and key of a fault in the file."""
    return tuple(_release(row) for row in rows("plugin_releases.yaml", "releases", "release"))


def _release(row: Row) -> PluginRelease:
    tag = row.text("release")
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        raise row.fault("release", f"{tag!r} is not a tag such as v0.20.0")
    found = PluginRelease(tag, row.day("date"), *row.provenance())
    row.done()
    return found
