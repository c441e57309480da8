"""Which labels a kubelet may give its own node, as catalog/node_labels.yaml lists them: by KEP-279, in two places.

The kubelet itself does not start with a wrong one in --node-labels. The API server's admission plugin NodeRestriction,
which kubeadm switches on, refuses them to the kubelet's identity; an administrator may set any.
"""

from __future__ import annotations

import re
from functools import cache

from gpunode.catalog.rows import rows
from gpunode.catalog.versions import first_with
from gpunode.regex import regex

Release = tuple[int, int]

_RESERVED = regex(r"([^/]*\.)?(kubernetes|k8s)\.io")
_ISOLATION = regex(r"([^/]*\.)?node-restriction\.kubernetes\.io")


def kubelet_may_set(name: str, kubelet: Release | None) -> bool:
    """Whether a kubelet starts with this name in --node-labels. None: one that is not old."""
    return _is_free(name) or _before(kubelet, first_with("kubelet", "refuses-node-labels"))


def node_may_change(name: str, server: Release | None) -> bool:
    """Whether NodeRestriction lets a node's own identity set this label on its node. None: a server that is not old."""
    return _is_free(name) or _before(server, first_with("apiserver", "restricts-node-labels"))


def node_may_register_with(name: str, server: Release | None) -> bool:
    """The same of a node that is made anew: some years longer, only what isolates nodes was refused there."""
    if _ISOLATION.fullmatch(_domain(name)):
        return node_may_change(name, server)
    return _is_free(name) or _before(server, first_with("apiserver", "restricts-registration"))


def _is_free(name: str) -> bool:
    """Outside the reserved domains, or a kubelet's own in them."""
    names, domains = _own()
    domain = _domain(name)
    return name in names or not _RESERVED.fullmatch(domain) or bool(domains.fullmatch(domain))


def _domain(name: str) -> str:
    return name.partition("/")[0] if "/" in name else ""


def _before(release: Release | None, first: tuple[int, ...]) -> bool:
    return release is not None and release < first[:2]


@cache
def _own() -> tuple[frozenset[str], re.Pattern[str]]:
    """Whole names, and a pattern of domains. Raises UsageError that names row and key of a fault in the file."""
    names: list[str] = []
    domains: list[str] = []
    for row in rows("node_labels.yaml", "own", "source"):
        names += row.maybe_texts("names")
        domains += row.maybe_texts("domains")
        row.provenance()
        row.done()
    return frozenset(names), re.compile(rf"([^/]*\.)?({'|'.join(map(re.escape, domains))})")
