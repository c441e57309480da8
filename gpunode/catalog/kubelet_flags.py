"""Flags that kubelets no longer know, as catalog/kubelet_flags.yaml lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gpunode.catalog.rows import rows
from gpunode.model.versions import release


class GoneFlag(NamedTuple):
    since: tuple[int, int]  # the first release whose kubelet ends with "unknown flag"
    source: str
    is_switch: bool  # it takes no word that follows it as its value (`--allow-privileged`)
    kubeadm: str  # where it says that `kubeadm upgrade` takes it out of its own file; "": it does not, or not known

    @property
    def why(self) -> str:
        return f"is not known from {self.since[0]}.{self.since[1]} on"


def gone_flag(flag: str) -> GoneFlag | None:
    """None: it is not in the table."""
    return _table().get(flag)


def is_switch(flag: str) -> bool:
    """Whether it takes no word that follows it as its value (`--allow-privileged`)."""
    found = gone_flag(flag)
    return found is not None and found.is_switch


@cache
def _table() -> Mapping[str, GoneFlag]:
    """Raises UsageError that names row and key of a fault in the file."""
    found: dict[str, GoneFlag] = {}
    for row in rows("kubelet_flags.yaml", "flags", "release"):
        first = release(row.text("release"))
        if first is None:
            raise row.fault("release", "not a release such as 1.28")
        switches, kubeadm = row.maybe_texts("switches"), row.maybe_text("kubeadm") or ""
        source = row.provenance()[0]
        found |= {flag: GoneFlag(first, source, flag in switches, kubeadm) for flag in row.texts("gone")}
        row.done()
    return found
