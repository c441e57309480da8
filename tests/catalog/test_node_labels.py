"""Which labels a kubelet may give its node; the lab asks a real kubelet and API server for the same names."""

from __future__ import annotations

import pytest

from gpunode.catalog.node_labels import kubelet_may_set, node_may_change, node_may_register_with

# A name -> whether it is a kubelet's to set (tests/lab/test_kubernetes_labels.py).
NAMES = {
    "nvidia.com/gpu.product": True,
    "plain": True,
    "node.kubernetes.io/gpu": True,
    "kubelet.kubernetes.io/x": True,
    "x.node.kubernetes.io/y": True,
    "kubernetes.io/hostname": True,
    "topology.kubernetes.io/zone": True,
    "node.kubernetes.io/instance-type": True,
    "failure-domain.beta.kubernetes.io/zone": True,
    "notkubernetes.io/x": True,
    "kubernetes.io/instance-type": False,  # in KEP-279, and in no code
    "failure-domain.kubernetes.io/zone": False,
    "topology.kubernetes.io/rack": False,
    "kubernetes.io/role": False,
    "node-role.kubernetes.io/gpu": False,
    "node-restriction.kubernetes.io/x": False,
    "x.node-restriction.kubernetes.io/y": False,
    "alpha.kubernetes.io/nvidia-gpu-name": False,
    "x.k8s.io/y": False,
    "k8s.io/y": False,
}


@pytest.mark.parametrize(("name", "may"), NAMES.items())
def test_whose_name_it_is(name: str, may: bool) -> None:
    for release in ((1, 30), None):
        assert kubelet_may_set(name, release) is may
        assert node_may_change(name, release) is may
        assert node_may_register_with(name, release) is may
    assert kubelet_may_set(name, (1, 15))
    assert node_may_change(name, (1, 12))


@pytest.mark.parametrize(
    ("name", "server", "change", "register"),
    [
        ("alpha.kubernetes.io/nvidia-gpu-name", (1, 12), True, True),
        ("alpha.kubernetes.io/nvidia-gpu-name", (1, 13), False, True),
        ("alpha.kubernetes.io/nvidia-gpu-name", (1, 18), False, True),
        ("alpha.kubernetes.io/nvidia-gpu-name", (1, 19), False, False),
        ("node-restriction.kubernetes.io/x", (1, 12), True, True),
        ("node-restriction.kubernetes.io/x", (1, 13), False, False),
    ],
)
def test_from_which_release_on_a_server_refuses_it(
    name: str, server: tuple[int, int], change: bool, register: bool
) -> None:
    assert (node_may_change(name, server), node_may_register_with(name, server)) == (change, register)
