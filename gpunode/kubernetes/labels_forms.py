"""Labels on their way to a node: NFD's file, the kubelet's flag, and what an administrator sends to the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from gpunode.advice import typed
from gpunode.catalog.versions import first_with
from gpunode.errors import UsageError
from gpunode.kubernetes.release import Release

LabelForm = Literal["nfd", "node-labels", "patch", "kubectl"]
LABEL_FORMS: tuple[LabelForm, ...] = get_args(LabelForm)
FEATURES_D = "/etc/kubernetes/node-feature-discovery/features.d/gpunode"

# ValidateKubeletFlags and kubeletapis.IsKubeletLabel (kubernetes 1.20.2): below kubernetes.io and k8s.io these alone.
_KUBELETS_OWN = frozenset(
    f"{domain}/{name}"
    for domain, names in {
        "kubernetes.io": ("hostname", "os", "arch"),
        "beta.kubernetes.io": ("os", "arch", "instance-type"),
        "node.kubernetes.io": ("instance-type",),
        "topology.kubernetes.io": ("zone", "region"),
        "failure-domain.beta.kubernetes.io": ("zone", "region"),
    }.items()
    for name in names
)
_KUBELETS_DOMAINS = re.compile(r"([^/]*\.)?(kubelet|node)\.kubernetes\.io")
_RESERVED = re.compile(r"([^/]*\.)?(kubernetes|k8s)\.io")
# metadata.name of a Node: a DNS subdomain
_NODE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)


def kubelet_may_set(name: str, kubernetes: Release | None) -> bool:
    """Whether a kubelet starts with this name in --node-labels. None: one that is not old."""
    domain, slash, _ = name.rpartition("/")
    old = kubernetes is not None and kubernetes < first_with("kubelet", "refuses-node-labels")[:2]
    if not slash or old or name in _KUBELETS_OWN or _KUBELETS_DOMAINS.fullmatch(domain):
        return True
    return _RESERVED.fullmatch(domain) is None


def features_d(labels: Mapping[str, str]) -> str:
    """Lines of NFD's local source. It has no room for names below kubernetes.io, which NFD refuses."""
    return "".join(f"{name}={value}\n" for name, value in labels.items() if _below(name) == "nvidia.com")


def node_labels_flag(labels: Mapping[str, str], kubernetes: Release | None) -> str:
    pairs = (f"{name}={value}" for name, value in labels.items() if kubelet_may_set(name, kubernetes))
    return f"--node-labels={','.join(pairs)}"


def label_patch(labels: Mapping[str, str]) -> Mapping[str, object]:
    """For `kubectl patch node NAME --type merge`, which cannot make a node, as `kubectl apply` would of a typo."""
    return {"metadata": {"labels": dict(labels)}}


def label_command(node: str, labels: Mapping[str, str]) -> str:
    pairs = (f"{name}={value}" for name, value in labels.items())
    return typed("kubectl", "label", "node", node, "--overwrite", *pairs)


def node_name(text: str) -> str:
    """What a kubelet makes of a hostname: small letters. Raises UsageError for what cannot be a node's name."""
    name = text.strip().lower()
    if len(name) <= 253 and _NODE.fullmatch(name):
        return name
    raise UsageError(
        f"{text[:80]!r} is not the name of a node",
        evidence="a node's name has small letters, digits, hyphens and dots",
        remedy="name the node with --node; kubectl get nodes lists them",
    )


def _below(name: str) -> str:
    return name.rpartition("/")[0]
