"""What `check` and `k8s preflight` say of nodes of Kubernetes, from 1.8 to 1.37 and of every distribution."""

from __future__ import annotations

import pytest

from tests.golden_text import assert_golden
from tests.recorded.distributions import DISTRIBUTIONS
from tests.recorded.dra import DRA
from tests.recorded.kubelets import KUBELETS

OTHERS = (
    "debian12-k0s-a30",
    "rocky8-kubelet135",  # cgroup v1
    "ubuntu2204-gpu-operator",
    "ubuntu2204-microk8s-t4",
    "ubuntu2204-rke2-a30",
    "ubuntu2404-k3s-l4",
    "ubuntu2404-node-l40s",
    "ubuntu2404-operator-toolkit",
)


WANTED = {recipe.slug: recipe.options for recipe in DRA}  # what check is asked with
NODES = [*(recipe.slug for recipe in (*KUBELETS, *DISTRIBUTIONS)), *OTHERS, *WANTED]


@pytest.mark.parametrize("slug", NODES)
def test_what_check_says_of_a_node_is_the_golden_text(
    slug: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_golden(slug, "findings.txt", ["check"], WANTED.get(slug, ()), monkeypatch, capsys)


@pytest.mark.parametrize("slug", NODES)
def test_what_stands_before_a_nodes_upgrade_is_the_golden_text(
    slug: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_golden(slug, "preflight.txt", ["k8s", "preflight"], ["--to", "1.38"], monkeypatch, capsys)
