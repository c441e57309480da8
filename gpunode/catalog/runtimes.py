"""Kubernetes distributions with embedded containerd, as catalog/runtimes.yaml lists them."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from gpunode.catalog.rows import Row, rows


class KubernetesDistribution(NamedTuple):
    name: str  # "k3s"
    units: tuple[str, ...]  # systemd units, any of which runs it
    kubelet_units: tuple[str, ...]  # any of which runs its kubelet
    kubelet_args: str  # where people tell its kubelet something
    config: str  # containerd's config, which it writes anew at every start
    socket: str  # containerd's
    reads: str  # directory of the files that people own and it reads
    since: tuple[tuple[int, int, int], ...]  # first release of each minor with what gpunode needs; () = every one
    why: str  # what came with those releases
    source: str
    checked: str
    grade: str

    def understands(self, version: str | None) -> bool:
        """Whether this release ("1.31.4+k3s1") reads what gpunode writes; an unknown version is given the benefit."""
        found = re.match(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})", version or "")
        if found is None or not self.since:
            return True
        have = (int(found[1]), int(found[2]), int(found[3]))
        return have >= max(self.since) or any(have[:2] == least[:2] and have >= least for least in self.since)


def merged_by_rancher(directory: str, path: str) -> bool:
    """Whether k3s and rke2, whose `directory` it is, read their settings from this file.

    That is config.yaml, and in config.yaml.d all .yaml and .yml in upper or lower case (pkg/configfilearg, dotDFiles).
    """
    return re.fullmatch(rf"{re.escape(directory)}/config\.yaml(\.d/[^/]+\.(?i:ya?ml))?", path) is not None


@cache
def kubernetes_distributions() -> tuple[KubernetesDistribution, ...]:
    """Raises UsageError that names row and key of a fault in the file."""
    return tuple(_distribution(row) for row in rows("runtimes.yaml", "runtimes", "name"))


def kubernetes_distribution(name: str) -> KubernetesDistribution:
    return next(c for c in kubernetes_distributions() if c.name == name)


def _distribution(row: Row) -> KubernetesDistribution:
    found = KubernetesDistribution(
        row.text("name"),
        row.texts("units"),
        row.maybe_texts("kubelet_units") or row.texts("units"),
        row.text("kubelet_args"),
        row.text("config"),
        row.text("socket"),
        row.text("reads"),
        tuple(_release(row, text) for text in row.texts("since")),
        row.text("why"),
        *row.provenance(),
    )
    row.done()
    return found


def _release(row: Row, text: str) -> tuple[int, int, int]:
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        raise row.fault("since", f"{text!r} is not a release such as 1.29.0")
    return int(found[1]), int(found[2]), int(found[3])
