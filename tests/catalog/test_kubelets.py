"""Gates and flags that kubelets lose: each row is one that the readers take, with its own source."""

from __future__ import annotations

import pytest

from gpunode.catalog.feature_gates import first_refusal, incomplete_releases, listed_to, needed_by, why_refused
from gpunode.catalog.kubelet_flags import _table, gone_flag, is_switch


@pytest.mark.parametrize(
    ("flag", "since", "source", "switch", "kubeadm"),
    [
        ("cadvisor-port", (1, 12), "kubernetes/kubernetes#65707", False, False),
        ("non-masquerade-cidr", (1, 24), "kubernetes/kubernetes#107096", False, False),
        ("container-runtime", (1, 27), "kubernetes.io, Upcoming Changes in Kubernetes v1.27", False, True),
        ("pod-infra-container-image", (1, 35), "kubernetes/kubernetes#133779", False, True),
        ("storage-driver-secure", (1, 37), "kubernetes/kubernetes#139870", True, False),
    ],
)
def test_a_flag_that_goes(flag: str, since: tuple[int, int], source: str, switch: bool, kubeadm: bool) -> None:
    found = gone_flag(flag)
    assert found
    assert (found.since, is_switch(flag), bool(found.kubeadm)) == (since, switch, kubeadm)
    assert found.source.startswith(source)


def test_eighteen_flags_of_cadvisors_go_in_137() -> None:
    of_137 = {name for name, one in _table().items() if one.since == (1, 37)}
    assert len(of_137) == 18
    assert {"containerd", "containerd-namespace"} < of_137
    assert gone_flag("node-ip") is None


@pytest.mark.parametrize(
    ("gate", "on", "since", "source"),
    [
        ("CPUManager", True, (1, 33), "kubernetes/kubernetes#129296"),
        ("KubeletPodResources", True, (1, 30), "kubernetes/kubernetes#122139"),
        ("PodPriority", True, (1, 19), "kubernetes/website, feature-gates-removed"),
        ("AuthorizeWithSelectors", False, (1, 34), "kubernetes/kubernetes, pkg/features/kube_features.go of 1.35"),
        ("AllowOverwriteTerminationGracePeriodSeconds", True, (1, 35), "kubernetes/kubernetes, pkg/features/kube_feat"),
        ("SidecarContainers", False, (1, 33), "kubernetes/kubernetes, pkg/features/kube_features.go of 1.33"),
    ],
)
def test_a_gate_that_goes_or_is_locked(gate: str, on: bool, since: tuple[int, int], source: str) -> None:
    found = first_refusal(gate, (1, 38), on=on)
    assert found
    assert found.since == since
    assert found.source.startswith(source)
    assert why_refused(gate, (since[0], since[1] - 1), on=on) is None


def test_a_gate_that_is_locked_may_be_said_as_it_is_locked() -> None:
    assert first_refusal("AllowOverwriteTerminationGracePeriodSeconds", (1, 35), on=False) is None
    assert first_refusal("AuthorizeWithSelectors", (1, 35), on=True) is None


def test_how_far_the_tables_go() -> None:
    assert (listed_to(), incomplete_releases()) == ((1, 37), ((1, 36), (1, 37)))
    assert set(needed_by((1, 9))) == {"Accelerators", "DevicePlugins"}
