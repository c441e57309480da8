"""gpunode k8s verify: which engines may run the kubelet's pods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.cli.app import main
from gpunode.cli.verbs.k8s_verify_pod import _manifest
from gpunode.engines.kubernetes.pod_engines import pod_engines
from gpunode.errors import ExitCode
from gpunode.facts.collect import collect
from gpunode.model.facts import HostFacts, KubernetesFacts, RuntimeFacts
from gpunode.model.kubernetes import KubeletSettings, NodeFacts
from gpunode.transport.recorded import Recorded
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
DOCKER, CONTAINERD = (next(one for one in h.READY.runtimes if one.name == name) for name in ("docker", "containerd"))
NO_CRI = replace(CONTAINERD, cri_error="unknown service runtime.v1.RuntimeService")


def kubelet(version: str, runtime: str | None = None) -> HostFacts:
    settings = KubeletSettings(container_runtime=runtime)
    return replace(h.READY, kubernetes=KubernetesFacts(True, version=version, settings=settings))


@pytest.mark.parametrize(
    ("host", "runtimes", "names"),
    [
        (kubelet("1.34.2"), (DOCKER, CONTAINERD), ["containerd"]),
        (kubelet("1.23.9"), (DOCKER, CONTAINERD), ["docker"]),
        (kubelet("1.23.9", "remote"), (DOCKER, CONTAINERD), ["containerd"]),
        (kubelet("1.34.2"), (DOCKER, NO_CRI), []),
        (kubelet("1.34.2"), (NO_CRI,), ["containerd"]),
        (kubelet("1.34.2"), (replace(CONTAINERD, active=False),), []),
    ],
    ids=["containerd", "docker before 1.24", "remote before 1.24", "cri-dockerd", "CRI is off", "it does not run"],
)
def test_engines_of_the_pods(host: HostFacts, runtimes: tuple[RuntimeFacts, ...], names: list[str]) -> None:
    assert [one.name for one in pod_engines(replace(host, runtimes=runtimes))] == names


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--image", "registry.example/vectoradd:12.5"], "--image is for --pod"),
        (["--host-kubeconfig", "/root/admin.conf"], "--host-kubeconfig is for --pod"),
        (["--node", "gpu07"], "--node is for --pod"),
        (["--pod", "--host-kubeconfig", "admin.conf"], "is no absolute path"),
        (["--pod", "--host-kubeconfig", "/a", "--kubeconfig", "b"], "exclude each other"),
        (["--pod", "--node", "gpu07", "--ssh", "gpu07,gpu08"], "--node takes one host"),
        (["--context", "lab"], "--context is for --kubeconfig"),
        (["--kubeconfig", "b", "--recorded", "anywhere"], "says nothing of today's cluster"),
        (["--pod", "--node", "gpu_07"], "is not the name of a node"),
        (["--pod", "--image", "a b"], "'a b' is not an image"),
        (["--pod", "--recorded", "anywhere"], "a recording runs nothing"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["k8s", "verify", *words]) == ExitCode.USAGE
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("name", "count", "asked"),
    [
        ("nvidia.com/gpu", "8", "nvidia.com/gpu"),
        ("nvidia.com/gpu.shared", "0", "nvidia.com/gpu"),
        ("nvidia.com/gpu.shared", "4", "nvidia.com/gpu.shared"),
        ("nvidia.com/mig-1g.10gb", "7", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/gpumem", "8", "nvidia.com/gpu"),
        ("nvidia.com/hostdev", "8", "nvidia.com/gpu"),
        ("cpu", "64", "nvidia.com/gpu"),
    ],
)
def test_of_what_a_pod_is_given_one(name: str, count: str, asked: str) -> None:
    node = NodeFacts(allocatable={name: count})
    host = replace(h.READY, kubernetes=replace(h.READY.kubernetes, node=node))
    pod: Any = _manifest("gpunode-verify-1", "gpu07", host, "nvidia", "registry.example/vectoradd:12.5")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {asked: 1}


@pytest.mark.parametrize(
    ("host", "runtime_class"),
    [
        ("ubuntu2404-node-l40s-ready", None),
        ("ubuntu2204-aks134-a100", None),  # its default is nvidia-container-runtime, and it has no class nvidia
        ("ubuntu2404-k3s-l4", "nvidia"),
    ],
)
def test_the_pod_names_a_class_where_nvidia_is_not_the_default(host: str, runtime_class: str | None) -> None:
    facts = collect(Recorded((EXAMPLES / host / "facts.txt").read_bytes(), host))
    spec: Any = _manifest("gpunode-verify-1", "gpu07", facts, "nvidia", None)["spec"]
    assert spec.get("runtimeClassName") == runtime_class
