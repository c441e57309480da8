"""Labels on their way to a node: NFD's file, the kubelet's flag, and what an administrator sends to the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from gpunode.advice import listing, typed
from gpunode.catalog.node_labels import kubelet_may_set, node_may_change
from gpunode.errors import UsageError
from gpunode.model.versions import Release, written
from gpunode.regex import regex

LabelForm = Literal["nfd", "node-labels", "patch", "kubectl"]
LABEL_FORMS: tuple[LabelForm, ...] = get_args(LabelForm)
FEATURES_D = "/etc/kubernetes/node-feature-discovery/features.d/gpunode"

# metadata.name of a Node: a DNS subdomain
_NODE = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)


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


def who_may(labels: Mapping[str, str], kubernetes: Release | None) -> str:
    """With whose kubeconfig the API server takes these. A server is never older than its kubelets."""
    refused = [name for name in labels if not node_may_change(name, kubernetes)]
    if not refused:
        return "with an administrator's kubeconfig or, on the node itself, the kubelet's own"
    return (
        f"with an administrator's kubeconfig alone: NodeRestriction refuses {listing(refused)} to the node's own "
        "identity (is not allowed to modify labels)"
    )


def not_for_the_kubelet(labels: Mapping[str, str], kubelet: Release | None) -> str:
    """What this host's kubelet would not start with; "": it takes all of them."""
    refused = [name for name in labels if not kubelet_may_set(name, kubelet)]
    if not refused or kubelet is None:
        return ""
    return f"kubelet {written(kubelet)} does not start with {listing(refused)} in --node-labels"


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
