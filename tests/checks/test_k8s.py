"""Kubernetes on this node: each check passes, finds its fault, and says why when it cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.causes import folded
from gpunode.model.facts import (
    DriverFacts,
    HostFacts,
    IgnoredProcess,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    RuntimeFacts,
    ServiceFacts,
)
from gpunode.model.kubernetes import DevicePlugins, Gate, KubeletSettings, NodeFacts, PluginPod
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import RuntimeSpec, Spec
from tests.checks import hosts as h

UUID = "GPU-5f1c2a90-7d11-4c3e-9a7e-0123456789ab"
OLD_GPUS = "alpha.kubernetes.io/nvidia-gpu"
LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
FILE = "featureGates of /var/lib/kubelet/config.yaml"
DIRECTORY = "/var/lib/kubelet/device-plugins"
PLUGIN = PluginPod("kube-system_nvidia-device-plugin-daemonset-x7x2k", "nvidia-device-plugin-ctr", 0)
VALIDATOR = PluginPod("gpu-operator_nvidia-operator-validator-8kq2x", "nvidia-operator-validator", 0)
ITS_DRIVER = PluginPod("gpu-operator_nvidia-driver-daemonset-5hx9w", "k8s-driver-manager", 0)
READY_FILES = frozenset({"driver-ready", "toolkit-ready", "cuda-ready", "plugin-ready"})
RUNS = ServiceFacts("loaded", "active", "running", "enabled")
FLAPS = ServiceFacts("loaded", "activating", "auto-restart", "enabled")
SWAP = ("/dev/sda3",)
GATED = Gate(True, "--feature-gates")
WELL_PLUGINS = DevicePlugins(
    DIRECTORY, kubelet_socket=True, sockets={"nvidia-gpu.sock": True}, registered={"nvidia.com/gpu": (UUID,)},
    pods=(PLUGIN, VALIDATOR), processes=(4711,), image="nvcr.io/nvidia/k8s-device-plugin:v0.18.0",
    options={"PASS_DEVICE_SPECS": "true"}, pod_resources=True, validations=READY_FILES, allocated=2,
)  # fmt: skip
WELL_NODE = NodeFacts(
    conditions={"Ready": "True KubeletReady", "DiskPressure": "False KubeletHasNoDiskPressure"},
    capacity={"nvidia.com/gpu": "1", "cpu": "64", "memory": "5Ki"}, allocatable={"nvidia.com/gpu": "1"},
    labels={"nvidia.com/gpu.count": "1", "nvidia.com/cuda.driver-version.full": h.V},
    taints=("NoSchedule nvidia.com/gpu",),
)  # fmt: skip
WELL_SETTINGS = KubeletSettings({"MemoryQoS": Gate(True, FILE)}, ("nvidia.com/gpu",), "static", "best-effort")
WELL_KUBERNETES = KubernetesFacts(
    True, "systemd", "kubeadm", joined=True, running=True, version="1.34.2", settings=WELL_SETTINGS,
    device_plugins=WELL_PLUGINS, node=WELL_NODE,
)  # fmt: skip
WELL = replace(h.smi(h.seen(uuid=UUID)), kubernetes=WELL_KUBERNETES)
# A workstation: two of one model and a display card.
TWO_MODELS = replace(
    h.smi(
        *(h.seen(name=name, uuid=UUID) for name in ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", "NVIDIA T400"))
    ),
    kubernetes=WELL_KUBERNETES,
)
PASSED_ON = replace(h.GPU, address="0000:61:00.0", driver="vfio-pci")
BARE = HostFacts("bare", "bare", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=False)
# test_sharing.py, test_dra.py, test_kubelet_flags.py
ELSEWHERE = ("k8s.sharing-config", "k8s.dra-needs", "k8s.dra-boot", "k8s.kubelet-flags")
IDS = tuple(doc.id for doc in all_checks() if doc.id.startswith("k8s.") and doc.id not in ELSEWHERE)
RUNC = replace(h.CONTAINERD_ENGINE, effective_default="runc")


def outcome(id: str, host: HostFacts, spec: Spec | None = None) -> CheckOutcome:
    return run_all(host, spec, load_catalog(), today=h.TODAY).results[id].outcome


def kubernetes(on: HostFacts = WELL, /, **changes: Any) -> HostFacts:
    return replace(on, kubernetes=replace(on.kubernetes, **changes))


def plugins(on: HostFacts = WELL, /, **changes: Any) -> HostFacts:
    return kubernetes(on, device_plugins=replace(WELL_PLUGINS, **changes))


def node(on: HostFacts = WELL, /, **changes: Any) -> HostFacts:
    return kubernetes(on, node=replace(WELL_NODE, **changes))


def settings(version: str = "1.34.2", /, **changes: Any) -> HostFacts:
    return kubernetes(version=version, settings=replace(WELL_SETTINGS, **changes))


def gates(version: str, **named: bool) -> HostFacts:
    return settings(version, gates={name: Gate(on, FILE) for name, on in named.items()})


def down(on: HostFacts = WELL) -> HostFacts:
    return replace(kubernetes(on, running=False), services={**on.services, "kubelet.service": FLAPS})


def swapping(allowed: bool | None, unit: ServiceFacts = FLAPS, swap: tuple[str, ...] | None = SWAP) -> HostFacts:
    host = replace(WELL, services={**WELL.services, "kubelet.service": unit})
    return kubernetes(replace(host, system=replace(h.SYSTEM, swap=swap)), starts_with_swap=allowed)


def condition(name: str, says: str) -> HostFacts:
    return node(conditions={**WELL_NODE.conditions, name: says})


GONE: Mapping[str, Any] = {"sockets": {}, "registered": {}, "pods": (), "processes": (), "image": None, "options": None}
NEVER = plugins(**GONE)
# It started before the kubelet's runtime was configured: it waits, and has made no socket.
BLIND = plugins(sockets={}, registered={}, said="No devices found")
ENDS = plugins(**{**GONE, "pods": (replace(PLUGIN, restarts=7),), "said": "could not load NVML library"})
LEFT = plugins(pods=(), processes=())
# As NVIDIA's Network Operator registers network cards.
CARDS = {"nvidia.com/gpu": (), "nvidia.com/hostdev": ("0000:5e:00.0", "0000:5e:00.1")}
OF_CARDS = {"nvidia.com/gpu": "0", "nvidia.com/hostdev": "2"}
MIXED = replace(h.smi(h.seen(uuid=UUID, mig_uuids=("MIG-1", "MIG-2"))), kubernetes=WELL_KUBERNETES)
DRA = plugins(**GONE, dra=frozenset({"gpu.nvidia.com"}))
WAITING = "kube-system_nvidia-device-plugin-x7x2k"
WAITS = plugins(**GONE, waits={WAITING: True})
# rke2 starts its kubelet as a process of its own, over and over where that one ends.
RKE2 = replace(h.CONTAINERD_ENGINE, name="rke2", unit="rke2-agent.service", embedded_in="1.33.6+rke2r1", pid=910)
RKE2_DOWN = replace(kubernetes(running=False, distribution="rke2"), runtimes=(RKE2,),
                    services={"rke2-agent.service": RUNS})  # fmt: skip
# microk8s' kubelet is in another unit than its containerd.
MICROK8S = replace(RKE2, name="microk8s", unit="snap.microk8s.daemon-containerd.service", embedded_in="1.34.1")
KUBELITE = "snap.microk8s.daemon-kubelite.service"
MICROK8S_DOWN = replace(kubernetes(running=False, distribution="microk8s"), runtimes=(MICROK8S,),
                        services={MICROK8S.unit: RUNS, KUBELITE: FLAPS})  # fmt: skip
V1 = h.host(cgroup="v1", runtimes=(replace(h.READY.runtimes[1], embedded_in="1.35.4+k0s.0"),))

PASSES: tuple[tuple[str, HostFacts], ...] = (
    ("k8s.labels", node(TWO_MODELS, labels={"nvidia.com/gpu.count": "2"})),
    ("k8s.labels", node(TWO_MODELS, labels={"nvidia.com/gpu.count": "1"})),
    *((id, WELL) for id in IDS if id not in ("k8s.dra", "k8s.swap")),
    ("k8s.swap", swapping(False, swap=())),
    ("k8s.swap", swapping(True)),
    ("k8s.swap", swapping(True, RUNS)),
    ("k8s.detect", replace(WELL, services={"k3s.service": RUNS, "kubelet.service": replace(RUNS, active="inactive")})),
    ("k8s.detect", kubernetes(h.containerd(embedded_in="1.34.2+k3s1"), distribution=None, kubelet=True)),
    ("k8s.image-pull", plugins(processes=())),
    ("k8s.image-pull", node(NEVER, images=("mirror:5000/nvidia/k8s-device-plugin:v0.20.0",))),
    ("k8s.dra", DRA),
    ("k8s.dra", plugins(**{**GONE, "registered": CARDS}, dra=frozenset({"gpu.nvidia.com"}))),
    ("k8s.capacity", node(capacity={**WELL_NODE.allocatable, "nvidia.com/hostdev": "2"},
                          allocatable={**WELL_NODE.allocatable, "nvidia.com/hostdev": "1"})),
    ("k8s.kubelet-up", kubernetes(replace(WELL, services={}), distribution="k3s")),
    ("k8s.feature-gates", gates("1.11.3", Accelerators=True)),
    ("k8s.feature-gates", gates("1.27.9", DevicePlugins=True)),
    ("k8s.feature-gates", gates("1.34.2", NodeSwap=True)),
    ("k8s.labels-legacy", settings("1.15.12", node_labels=(LABEL,))),
    ("k8s.labels-legacy", settings(node_labels=("node.kubernetes.io/gpu", "topology.kubernetes.io/zone", "a/b"))),
    ("k8s.dp-container", plugins(pods=(), processes=(), sockets={"nvidiaGPU-1.sock": True})),
    ("k8s.dp-registered", plugins(registered={"nvidia.com/gpu": (f"{UUID}::0", f"{UUID}::1")})),
    ("k8s.dp-registered", plugins(registered={"nvidia.com/gpu": ("0",)})),
    ("k8s.dp-registered", plugins(replace(WELL, pci=(h.GPU, PASSED_ON)), registered={"nvidia.com/gpu": ("0",)})),
    ("k8s.dp-registered", plugins(MIXED, registered={"nvidia.com/gpu": (), "nvidia.com/mig-1g.10gb": ("MIG-1",)})),
    ("k8s.cpumanager", plugins(options={"DEVICE_LIST_STRATEGY": "cdi-cri"})),
    ("k8s.kubelet-version", kubernetes(h.containerd(version="1.5.9"), version="1.25.3", kubelet=True)),
    ("k8s.legacy-resource", node(capacity={OLD_GPUS: "0"})),
    ("k8s.taints", node(NEVER, taints=("NoSchedule nvidia.com/gpu", "NoExecute node.kubernetes.io/not-ready",
                                       "PreferNoSchedule team"))),
)  # fmt: skip
BUILDING = replace(
    plugins(pods=(ITS_DRIVER, VALIDATOR), sockets={}, registered={}, processes=(), validations=frozenset()),
    driver=DriverFacts(container=True),
)
FAULTS: tuple[tuple[str, HostFacts, str, Severity | None], ...] = (
    ("k8s.detect", replace(WELL, services={"k3s-agent.service": RUNS, "kubelet.service": RUNS}),
     "kubelet.service, k3s-agent.service are active", None),
    ("k8s.swap", swapping(False), "/proc/swaps: /dev/sda3; kubelet.service is activating, failSwapOn is not false",
     None),
    ("k8s.swap", swapping(False, RUNS), "kubelet.service is active, failSwapOn is not false", Severity.WARNING),
    ("k8s.image-pull", WAITS, "plugin-x7x2k has had a sandbox and no container for more than ten minutes", None),
    ("k8s.dp-container", WAITS, "/var/log/pods of kube-system_nvidia-device-plugin-x7x2k no container",
     Severity.WARNING),
    ("k8s.allocated-ghosts", plugins(ghosts=("7c1a-1",), kept=True),
     "1 of the 2 pods in kubelet_internal_checkpoint have no directory, and it kept them for the newest pod: 7c1a-1",
     None),
    ("k8s.cgroup-v1", V1, "/proc/mounts", None),
    ("k8s.kubelet-up", down(), "kubelet.service: ActiveState activating, SubState auto-restart; no process", None),
    ("k8s.kubelet-up", RKE2_DOWN, "rke2-agent.service: ActiveState active, SubState running; no process of it", None),
    ("k8s.kubelet-up", MICROK8S_DOWN, f"{KUBELITE}: ActiveState activating", None),
    ("k8s.feature-gates", gates("1.28.1", DevicePlugins=True), f"not known from 1.28 on ({FILE})", None),
    ("k8s.feature-gates", gates("1.20.2", Accelerators=True), "Accelerators is not known from 1.12 on", None),
    ("k8s.feature-gates", gates("1.34.2", NodeSwap=False), "NodeSwap cannot be switched off from 1.34 on", None),
    ("k8s.feature-gates", settings("1.34.2", gates={"CPUManager": GATED}, unread="/x"), "(--feature-gates)", None),
    ("k8s.kubelet-version", kubernetes(h.containerd(version="1.5.9"), version="1.26.0"), "CRI v1 alone", None),
    ("k8s.labels-legacy", settings(node_labels=(LABEL,)), "--node-labels has alpha.kubernetes.io/nvidia", None),
    ("k8s.labels-legacy", settings(node_labels=("gpu.k8s.io/x",)), "--node-labels has gpu.k8s.io/x", None),
    ("k8s.labels-legacy", node(labels={LABEL: "Tesla-K80"}), "the node's object: alpha",
     Severity.WARNING),
    ("k8s.dp-dir", plugins(kubelet_socket=False), f"{DIRECTORY}/kubelet.sock", None),
    ("k8s.dp-container", NEVER, "has no socket of one", Severity.WARNING),
    ("k8s.dp-container", ENDS, "container nvidia-device-plugin-ctr, started again 7 times", None),
    ("k8s.dp-container", node(LEFT, allocatable={"nvidia.com/gpu": "0"}),
     f"nvidia-gpu.sock, nvidia.com/gpu is left in {DIRECTORY}; no process of one is there, and the node gives", None),
    ("k8s.dp-container", node(LEFT, allocatable={"cpu": "64"}), "the node gives out no GPU", None),
    ("k8s.dp-container", node(LEFT, allocatable=OF_CARDS), "the node gives out no GPU", None),
    ("k8s.runtimeclass", replace(BLIND, runtimes=(RUNC,)), 'its log: "No devices found"; the default runtime is runc',
     None),
    ("k8s.dp-socket", plugins(sockets={"nvidia-gpu.sock": False}), "nvidia-gpu.sock is older than kubelet.sock", None),
    ("k8s.dp-socket", BLIND, "no socket of NVIDIA's; its log", None),
    ("k8s.runtimeclass", plugins(replace(BLIND, runtimes=(RUNC,)), sockets={}, registered=CARDS, said="No devices"),
     'its log: "No devices"; the default runtime is runc', None),
    ("k8s.dp-registered", plugins(registered={}), "RegisteredDevices has no GPU", None),
    ("k8s.dp-registered", plugins(registered={"nvidia.com/gpu": (), "rdma/hca": ("a",)}), "has no GPU", None),
    ("k8s.dp-registered", plugins(registered=CARDS), "RegisteredDevices has no GPU", None),
    ("k8s.dp-registered", plugins(registered={"nvidia.com/gpu": ("GPU-other",)}), f"1 healthy devices, without {UUID}",
     Severity.WARNING),
    ("k8s.dp-registered", plugins(replace(WELL, pci=(h.GPU, replace(h.GPU, address="0000:61:00.0"))),
                                  registered={"nvidia.com/gpu": ("0",)}), "1 of 2 GPUs", Severity.WARNING),
    ("k8s.dp-version", plugins(image="nvcr.io/nvidia/k8s-device-plugin:v0.14.4"), "v0.14.4", None),
    ("k8s.dp-version", plugins(image="mirror:5000/k8s-device-plugin:1.0.0-beta4"), "1.0.0-beta4", None),
    ("k8s.podresources", plugins(pod_resources=False), "pod-resources/kubelet.sock", None),
    ("k8s.dra", plugins(dra=frozenset({"gpu.nvidia.com"})), "RegisteredDevices has nvidia.com/gpu", None),
    ("k8s.cpumanager", plugins(options={}), "PASS_DEVICE_SPECS of the device plugin is not set", None),
    ("k8s.cpumanager", plugins(options={"PASS_DEVICE_SPECS": "false", "CONFIG_FILE": "/c"}), "plugin is false", None),
    ("k8s.topology-manager", settings(cpu_manager="none", topology_manager="single-numa-node"),
     "topologyManagerPolicy is single-numa-node, cpuManagerPolicy is none", None),
    ("k8s.node-ready", condition("Ready", "False KubeletNotReady"), "Ready is False (KubeletNotReady)", None),
    ("k8s.node-ready", condition("Ready", "Unknown NodeStatusUnknown"), "Ready is Unknown", None),
    ("k8s.node-ready", node(unschedulable=True), "spec.unschedulable", Severity.WARNING),
    ("k8s.capacity", node(capacity={"cpu": "64"}), "capacity has no nvidia.com/gpu", None),
    ("k8s.capacity", node(capacity=OF_CARDS, allocatable=OF_CARDS), "capacity has no nvidia.com/gpu", None),
    ("k8s.capacity", node(capacity={"nvidia.com/gpu": "8"}, allocatable={"nvidia.com/gpu": "7"}),
     "nvidia.com/gpu 8, allocatable 7", Severity.WARNING),
    ("k8s.capacity", node(capacity={"nvidia.com/gpu": "8"}, allocatable={}), "allocatable 0", Severity.ERROR),
    ("k8s.labels", node(labels={"nvidia.com/gpu.count": "4"}), "nvidia.com/gpu.count is 4, not 1", None),
    ("k8s.labels", node(TWO_MODELS, labels={"nvidia.com/gpu.count": "3"}), "count is 3, not 1 or 2", None),
    ("k8s.labels", node(labels={"nvidia.com/cuda.driver-version.full": "550.1.1"}), f"550.1.1, not {h.V}", None),
    ("k8s.legacy-resource", node(capacity={OLD_GPUS: "4"}), "gpu 4; kubelet is 1.34", None),
    ("k8s.taints", node(NEVER, taints=("NoSchedule team/gpu",)), "has team/gpu, and no device plugin", None),
    ("k8s.eviction-pressure", condition("DiskPressure", "True KubeletHasDiskPressure"), "DiskPressure (Kubelet", None),
    ("k8s.eviction-pressure", condition("PIDPressure", "True KubeletHasInsufficientPID"), "PIDPressure (Kubelet", None),
    ("k8s.operator-managed", plugins(validations=frozenset({"driver-ready"})), "no toolkit-ready, cuda-ready", None),
    ("k8s.operator-managed", BUILDING, "nvidia-driver-daemonset-5hx9w is to bring it; /sys/module/nvidia is absent",
     Severity.ERROR),
)  # fmt: skip
UNKNOWN: tuple[tuple[str, HostFacts, str], ...] = (
    ("k8s.detect", kubernetes(distribution=None), "nothing tells whose"),
    ("k8s.swap", swapping(None), "failSwapOn of the kubelet was not read"),
    ("k8s.swap", kubernetes(swapping(False, RUNS), settings=None), "failSwapOn of the kubelet was not read"),
    ("k8s.swap", kubernetes(swapping(False, RUNS), settings=replace(WELL_SETTINGS, unread="/x")), "was not read"),
    ("k8s.swap", replace(swapping(False), services={}), "no unit of a kubelet"),
    ("k8s.swap", swapping(False, swap=None), "/proc/swaps was not read"),
    ("k8s.image-pull", NEVER, "nothing on this node tells"),
    ("k8s.image-pull", plugins(**{**GONE, "pods": None}), "/var/log/pods was not read"),
    ("k8s.image-pull", plugins(**GONE, waits={WAITING: False}), "has just come"),
    ("k8s.image-pull", node(WAITS, images=("nvcr.io/nvidia/k8s-device-plugin:v0.20.0",)), "no container though nvcr"),
    ("k8s.dp-container", plugins(**GONE, waits={WAITING: False}), "has just come"),
    ("k8s.allocated-ghosts", plugins(allocated=None), "were not read"),
    ("k8s.allocated-ghosts", plugins(ghosts=("7c1a-1",)), "takes them out when it next gives a device"),
    *((id, replace(WELL, kubernetes=KubernetesFacts()), "Kubernetes is not on this host") for id in IDS),
    *((id, down(), "k8s.kubelet-up") for id in IDS if id.startswith(("k8s.dp-", "k8s.dra", "k8s.runtimeclass"))),
    *((id, kubernetes(device_plugins=None), "was not read")
      for id in IDS
      if id.startswith(("k8s.dp-", "k8s.dra", "k8s.podres", "k8s.cpu", "k8s.operator-managed", "k8s.run", "k8s.image",
                        "k8s.alloc"))),
    *((id, replace(kubernetes(node=None), unread={"node": "no kubectl of root"}), "no kubectl of root")
      for id in ("k8s.node-ready", "k8s.capacity", "k8s.labels", "k8s.legacy-resource", "k8s.eviction-pressure",
                 "k8s.taints")),
    *((id, kubernetes(settings=None), "settings were not read")
      for id in ("k8s.feature-gates", "k8s.labels-legacy", "k8s.cpumanager", "k8s.topology-manager")),
    *((id, kubernetes(version=None), "version of the kubelet is not known")
      for id in ("k8s.feature-gates", "k8s.labels-legacy", "k8s.kubelet-version")),
    *((id, NEVER, "k8s.dp-container") for id in ("k8s.dp-socket", "k8s.dp-registered", "k8s.runtimeclass")),
    ("k8s.cgroup-v1", h.host(cgroup=None), "hierarchy is not known"),
    ("k8s.cgroup-v1", h.host(kubernetes=KubernetesFacts(True), cgroup="hybrid"), "version of the kubelet"),
    ("k8s.cgroup-v1", kubernetes(replace(WELL, cgroup="v1"), version="1.35.4", settings=None), "failCgroupV1 in"),
    ("k8s.kubelet-up", kubernetes(down(), joined=False), "has not joined a cluster"),
    ("k8s.kubelet-up", replace(kubernetes(running=False), services={}), "no unit of a kubelet was read"),
    ("k8s.kubelet-up", replace(kubernetes(running=False), ignored=(IgnoredProcess(9, "kubelet", 0, "in a container"),)),
     "no process of a kubelet was seen"),
    ("k8s.kubelet-up", replace(down(), services={"kubelet.service": ServiceFacts("loaded", enabled="disabled")}),
     "switched it off"),
    ("k8s.feature-gates", settings(gates={}, unread="/var/lib/kubelet/config.yaml"), "config.yaml was not read"),
    ("k8s.kubelet-version", kubernetes(h.containerd(version=None), version="1.34.2"), "no containerd"),
    ("k8s.kubelet-version", kubernetes(h.containerd(embedded_in="1.34.2+k3s1"), version="1.34.2"), "brings the"),
    ("k8s.dp-container", DRA, "a DRA driver"),
    ("k8s.dp-container", kubernetes(LEFT, node=None), "only nvidia-gpu.sock, nvidia.com/gpu is seen"),
    ("k8s.dp-container", plugins(**{**GONE, "pods": None}), "/var/log/pods was not read"),
    ("k8s.runtimeclass", plugins(sockets={}, registered={}), "log was not read"),
    ("k8s.runtimeclass", BLIND, "something else hides"),
    ("k8s.runtimeclass", replace(BLIND, runtimes=(replace(RUNC, effective_default=None),)), "did not say which"),
    ("k8s.dp-registered", plugins(registered=None), "kubelet_internal_checkpoint was not read"),
    ("k8s.dp-registered", plugins(replace(WELL, driver=replace(WELL.driver, smi=None))), "did not list them"),
    ("k8s.dp-version", plugins(image=None), "is not known"),
    ("k8s.dp-version", plugins(image="registry/plugin@sha256:00"), "does not say its version"),
    ("k8s.podresources", kubernetes(plugins(pod_resources=False), version=None), "or its version is not known"),
    ("k8s.dra", WELL, "no DRA driver"),
    ("k8s.dra", plugins(registered=None, dra=frozenset({"gpu.nvidia.com"})), "is not known"),
    ("k8s.cpumanager", settings(cpu_manager="none"), "cpuManagerPolicy is none"),
    ("k8s.cpumanager", settings(cpu_manager="none", unread="/x"), "/x was not read"),
    ("k8s.cpumanager", plugins(options=None), "is not known"),
    ("k8s.cpumanager", plugins(processes=(1, 2)), "is not known"),
    ("k8s.cpumanager", plugins(options={"CONFIG_FILE": "/config/config.yaml"}), "in its container"),
    ("k8s.topology-manager", settings(topology_manager="none"), "topologyManagerPolicy is none"),
    ("k8s.topology-manager", settings(cpu_manager="none", unread="/x"), "/x was not read"),
    ("k8s.node-ready", node(conditions={}), "no condition Ready"),
    ("k8s.capacity", node(NEVER, capacity={}), "k8s.dp-container"),
    ("k8s.labels", node(labels={"a": "b"}), "no label"),
    ("k8s.legacy-resource", kubernetes(node(capacity={OLD_GPUS: "1"}), version="1.9.0"), "so old"),
    ("k8s.eviction-pressure", node(conditions={"Ready": "True"}), "no conditions"),
    ("k8s.operator-managed", plugins(pods=(PLUGIN,)), "does not manage this node"),
    ("k8s.dp-container", BUILDING, "the GPU Operator deploys one once it has validated the node"),
    ("k8s.operator-managed", plugins(pods=None), "is not known"),
)  # fmt: skip


@pytest.mark.parametrize(("id", "host"), PASSES)
def test_what_is_well_passes(id: str, host: HostFacts) -> None:
    assert outcome(id, host) is None


@pytest.mark.parametrize(("id", "host", "quoted", "severity"), [pytest.param(*r, id=f"{r[0]}: {r[2]}") for r in FAULTS])
def test_a_fault_is_found_and_quoted(id: str, host: HostFacts, quoted: str, severity: Severity | None) -> None:
    found = outcome(id, host)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert (bool(found.remedy), found.severity) == (True, severity)


@pytest.mark.parametrize(
    ("id", "faulty", "says"),
    [
        ("k8s.dp-dir", plugins(kubelet_socket=False), "systemctl restart {}, which makes it"),
        ("k8s.podresources", plugins(pod_resources=False), "systemctl restart {}, which makes it"),
        ("k8s.allocated-ghosts", plugins(ghosts=("7c1a-1",), kept=True), "systemctl restart {}, which counts anew"),
        ("k8s.node-ready", condition("Ready", "False KubeletNotReady"), "shows why; journalctl -b -u {} too"),
    ],
)
@pytest.mark.parametrize(
    ("services", "runtimes", "unit"),
    [
        ({"kubelet.service": RUNS}, (h.CONTAINERD_ENGINE,), "kubelet.service"),
        ({"rke2-agent.service": RUNS}, (RKE2,), "rke2-agent.service"),
        ({MICROK8S.unit: RUNS, KUBELITE: RUNS}, (MICROK8S,), KUBELITE),
    ],
    ids=["kubeadm", "rke2", "microk8s"],
)
def test_a_remedy_names_the_unit_that_runs_the_kubelet(
    id: str,
    faulty: HostFacts,
    says: str,
    services: Mapping[str, ServiceFacts],
    runtimes: tuple[RuntimeFacts, ...],
    unit: str,
) -> None:
    found = outcome(id, replace(faulty, services=services, runtimes=runtimes))
    assert isinstance(found, Finding)
    assert says.format(unit) in found.remedy.text


@pytest.mark.parametrize(("id", "host", "reason"), [pytest.param(*r, id=f"{r[0]}: {r[2]}") for r in UNKNOWN])
def test_what_is_not_known_is_no_pass(id: str, host: HostFacts, reason: str) -> None:
    told = outcome(id, host)
    assert isinstance(told, NotApplicable)
    assert reason in told.reason


@pytest.mark.parametrize("id", IDS)
def test_each_has_a_row_of_every_kind(id: str) -> None:
    assert all(any(row[0] == id for row in rows) for rows in (PASSES, FAULTS, UNKNOWN))
    assert isinstance(outcome(id, BARE), NotApplicable)


def test_a_host_without_kubernetes_is_quiet_for_one_reason() -> None:
    report = run_all(replace(WELL, kubernetes=KubernetesFacts()), None, load_catalog(), today=h.TODAY)
    said = {r.outcome.reason for id, r in report.results.items()
            if id.startswith("k8s.") and isinstance(r.outcome, NotApplicable)}  # fmt: skip
    assert said == {"no kubelet: Kubernetes is not on this host"}


@pytest.mark.parametrize(
    ("host", "says"),
    [(WELL, "kubeadm, version 1.34.2"), (kubernetes(distribution="eks", version=None), "eks"),
     (kubernetes(h.containerd(name="k3s", embedded_in="1.34.2+k3s1"), distribution=None, kubelet=True),
      "k3s, version 1.34.2+k3s1")],
)  # fmt: skip
def test_whose_kubernetes_it_is_is_told(host: HostFacts, says: str) -> None:
    result = run_all(host, None, load_catalog(), today=h.TODAY).results["k8s.detect"]
    assert (result.outcome, result.evidence) == (None, says)


def causes(host: HostFacts, spec: Spec | None = None) -> dict[str, list[str]]:
    report = folded(run_all(host, spec, load_catalog(), today=h.TODAY))
    return {c.id: [r.id for r in report.consequences(c)] for c in report.causes if c.id[:3] in ("k8s", "rt.", "os.")}


OFFERS_NONE: Mapping[str, Any] = {"capacity": {}, "allocatable": {}}
CONTAINERD_ALONE = replace(BLIND, runtimes=(RUNC,))


@pytest.mark.parametrize(
    ("host", "spec", "cause", "follows"),
    [
        (replace(gates("1.28.1", DevicePlugins=True), services=down().services), None, "k8s.feature-gates", None),
        (kubernetes(down(gates("1.28.1", DevicePlugins=True)), node=replace(
            WELL_NODE, conditions={"Ready": "Unknown NodeStatusUnknown"})), None, "k8s.feature-gates",
         ["k8s.kubelet-up", "k8s.node-ready"]),
        (node(plugins(sockets={"nvidia-gpu.sock": False}, registered={}), **OFFERS_NONE), None, "k8s.dp-socket",
         ["k8s.capacity", "k8s.dp-registered"]),
        (node(ENDS, **OFFERS_NONE), None, "k8s.dp-container", ["k8s.capacity", "k8s.dp-registered", "k8s.dp-socket"]),
        (CONTAINERD_ALONE, Spec(runtime=RuntimeSpec(default=False)), "k8s.runtimeclass",
         ["k8s.dp-registered", "k8s.dp-socket"]),
        (CONTAINERD_ALONE, None, "rt.effective-default",
         ["k8s.runtimeclass", "k8s.dp-registered", "k8s.dp-socket"]),
        (replace(down(), system=replace(h.SYSTEM, swap=("/dev/sda3",)), kubernetes=replace(
            WELL_KUBERNETES, running=False, starts_with_swap=False)), None, "k8s.swap", ["k8s.kubelet-up"]),
    ],
    ids=["a gate", "a gate keeps the kubelet down", "the plugin missed a restart of the kubelet", "the plugin ends",
         "no RuntimeClass", "runc is the default", "swap keeps the kubelet down"],
)  # fmt: skip
def test_the_cause_stands_first(host: HostFacts, spec: Spec | None, cause: str, follows: list[str] | None) -> None:
    found = causes(host, spec)
    assert next(iter(found)) == cause, found
    if follows is not None:
        assert found[cause] == follows


FULL_DISK = replace(h.SYSTEM, disks=(replace(h.ROOT, free_bytes=2 << 30),))


@pytest.mark.parametrize(
    ("pressures", "explained", "says"),
    [
        (("DiskPressure",), True, ("crictl rmi --prune",)),
        (("MemoryPressure",), False, ("--sort=-rss",)),
        (("PIDPressure",), False, ("podPidsLimit",)),
        (("DiskPressure", "MemoryPressure"), False, ("crictl rmi --prune", "--sort=-rss")),
    ],
    ids=["disk", "memory", "processes", "disk and memory"],
)
def test_no_room_on_a_disk_explains_pressure_on_disks_alone(
    pressures: tuple[str, ...], explained: bool, says: tuple[str, ...]
) -> None:
    """Memory and processes have remedies of their own, and no warning of a disk hides their error."""
    told = dict.fromkeys(pressures, "True It")
    host = replace(node(conditions={**WELL_NODE.conditions, **told}), system=FULL_DISK)
    found = causes(host)
    assert ("k8s.eviction-pressure" in found["os.disk-root"]) is explained
    assert ("k8s.eviction-pressure" in found) is not explained
    pressure = outcome("k8s.eviction-pressure", host)
    assert isinstance(pressure, Finding)
    every = ("crictl rmi --prune", "--sort=-rss", "podPidsLimit")
    assert tuple(one for one in every if one in pressure.remedy.text) == says


@pytest.mark.parametrize(
    ("distribution", "says"),
    [
        ("kubeadm", "/etc/default/kubelet"),
        ("k3s", "/etc/rancher/k3s/config.yaml"),
        ("k0s", "the worker profile in the cluster's k0s configuration"),
        ("microk8s", "/var/snap/microk8s/current/args/kubelet"),
        ("eks", "/etc/default/kubelet"),
    ],
)
def test_a_remedy_names_the_place_of_the_distribution(distribution: str, says: str) -> None:
    for id, host in (
        ("k8s.feature-gates", gates("1.28.1", DevicePlugins=True)),
        ("k8s.labels-legacy", settings(node_labels=(LABEL,))),
    ):
        found = outcome(id, kubernetes(host, distribution=distribution))
        assert isinstance(found, Finding)
        assert says in found.remedy.text


def test_what_ends_the_kubelet_ends_the_k3s_that_has_it_inside() -> None:
    k3s = replace(RKE2, name="k3s", unit="k3s-agent.service", embedded_in="1.33.6+k3s1", active=False, pid=None)
    host = kubernetes(gates("1.33.6", CPUManager=True), running=False, distribution="k3s")
    host = replace(host, runtimes=(k3s,), services={k3s.unit: replace(FLAPS, active="failed")})
    found = causes(host)
    assert found["k8s.feature-gates"] == ["rt.present", "k8s.kubelet-up"]
    docker = replace(h.READY.runtimes[0], active=False)
    apart = causes(replace(kubernetes(down(gates("1.28.1", DevicePlugins=True))), runtimes=(docker,)))
    assert "rt.present" in apart, "what ends a kubelet of kubeadm's ends no engine"


def test_the_version_of_the_kubelets_package_counts_where_it_did_not_answer() -> None:
    host = replace(
        gates("", DevicePlugins=True), packages=PackageFacts("apt", {"kubelet": PackageVersion("1.28.2-1.1")})
    )
    assert isinstance(outcome("k8s.feature-gates", host), Finding)
