"""What to bear in mind at any upgrade of this node, whatever was found."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing
from gpunode.catalog.feature_gates import incomplete_releases, listed_to
from gpunode.checks.upgrade.values import Note, Upgrade
from gpunode.model.kubernetes import CLOUDS
from gpunode.model.versions import written

SKEW = "kubernetes.io/releases/version-skew-policy"


def notes(upgrade: Upgrade) -> Iterator[Note]:
    yield from _tables(upgrade)
    yield from _skew(upgrade)
    yield from _whose_files(upgrade)


def _tables(upgrade: Upgrade) -> Iterator[Note]:
    """How far gpunode's own tables go."""
    last = listed_to()
    partly = [one for one in incomplete_releases() if upgrade.comes(one)]
    if upgrade.to > last:
        to = written(upgrade.to)
        yield Note(f"which feature gates and flags go in {to} is not known: they are listed up to {written(last)}")
    if partly:
        yield Note(f"of {listing(map(written, partly))} not all that goes is listed yet", "siderolabs/go-kubernetes")


def _skew(upgrade: Upgrade) -> Iterator[Note]:
    """The API server's release is not among the facts of a node."""
    to, steps = written(upgrade.to), upgrade.to[1] - upgrade.now[1] if upgrade.now else 1
    if steps:
        yield Note(
            f"no kubelet may be newer than its API server, whose release is not known here: that is upgraded to {to} "
            "first, and the node is drained before its kubelet is",
            SKEW,
        )
    if steps > 1:
        yield Note(
            f"{steps} releases: an API server takes one at a time, and the kubelet meets what is listed here one by "
            "one, by the release in front",
            SKEW,
        )


def _whose_files(upgrade: Upgrade) -> Iterator[Note]:
    """Who writes what the kubelet is told, and would undo an edit."""
    distribution, settings = upgrade.host.kubernetes.distribution, upgrade.host.kubernetes.settings
    if distribution == "microk8s":
        yield Note(
            "microk8s wrote most of its kubelet's arguments itself: whether a refresh of the snap takes out those that "
            "go is not known here"
        )
    elif upgrade.embedded:
        yield Note(
            f"{upgrade.later} brings a kubelet and a containerd, and passes them flags of its own that fit: what was "
            "looked at is what this node adds to them"
        )
    elif distribution in CLOUDS:
        yield Note(
            f"{distribution.upper()} has the kubelet's files written on every new node: what is to change in them "
            "changes in the node group or its user data"
        )
    elif distribution == "kubeadm" and settings and settings.config:
        yield Note(
            f"kubeadm writes {settings.config} anew from the cluster's ConfigMap kubelet-config: what is to change in "
            "it changes there too"
        )
