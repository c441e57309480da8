"""Flags that kubelets no longer know, as catalog/kubelet_flags.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpunode.catalog.rows import rows
from gpunode.model.versions import release


def gone_from(flag: str) -> tuple[int, int] | None:
    """(1, 27): the first release whose kubelet ends with "unknown flag"; None: it is not in the table."""
    found = _table().get(flag)
    return found[0] if found else None


def is_switch(flag: str) -> bool:
    """Whether it takes no word that follows it as its value (`--allow-privileged`)."""
    found = _table().get(flag)
    return found is not None and found[1]


@cache
def _table() -> Mapping[str, tuple[tuple[int, int], bool]]:
    """Raises UsageError that names row and key of a fault in the file."""
    found: dict[str, tuple[tuple[int, int], bool]] = {}
    for row in rows("kubelet_flags.yaml", "flags", "release"):
        first = release(row.text("release"))
        if first is None:
            raise row.fault("release", "not a release such as 1.28")
        switches = row.maybe_texts("switches")
        found |= {flag: (first, flag in switches) for flag in row.texts("gone")}
        row.provenance()
        row.done()
    return found
