"""gpunode k8s verify: which engines may run the kubelet's pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.cli.app import main
from gpunode.cli.verbs.k8s_verify_pod import _is_offered
from gpunode.engines.kubernetes.pod_engines import pod_engines
from gpunode.errors import ExitCode
from gpunode.model.facts import HostFacts, KubernetesFacts, RuntimeFacts
from gpunode.model.kubernetes import KubeletSettings
from tests.checks import hosts as h

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
    ("name", "count", "offered"),
    [
        ("nvidia.com/gpu", "8", True),
        ("nvidia.com/gpu", "0", False),
        ("nvidia.com/gpu.shared", "4", True),
        ("nvidia.com/mig-1g.10gb", "7", True),
        ("nvidia.com/hostdev", "8", False),
        ("cpu", "64", False),
    ],
)
def test_of_what_a_pod_is_given_one(name: str, count: str, offered: bool) -> None:
    assert _is_offered(name, count) is offered
