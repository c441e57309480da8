"""What the plugin's settings ask of a node: each rule on facts that break it, and on facts that do not."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from gpunode.kubernetes.plugin_forms import cluster_of
from gpunode.kubernetes.plugin_host import not_known, unfit
from gpunode.kubernetes.plugin_version import chosen
from gpunode.model.facts import (
    DriverFacts,
    HostFacts,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    RuntimeFacts,
)
from gpunode.model.kubernetes import Gate, KubeletSettings
from gpunode.model.smi import SmiFacts, SmiGpu
from tests.kubernetes.plugins import MPS, RELEASES, plugin

ENGINE = RuntimeFacts(
    "containerd",
    "2.1.4",
    "/etc/containerd/config.toml",
    "containerd.service",
    "/run/containerd/containerd.sock",
    active=True,
    effective_default="nvidia",
    handlers=("nvidia", "runc"),
    cdi=True,
)
KUBELET = KubernetesFacts(kubelet=True, version="1.34.1", settings=KubeletSettings())
GATE = KubeletSettings(gates=MappingProxyType({"DevicePluginCDIDevices": Gate(True, "--feature-gates")}))


def gpu(index: int, *profiles: str, mig: str = "Enabled") -> SmiGpu:
    return SmiGpu(index, f"0000:{index:02x}:00.0", "NVIDIA A100-SXM4-40GB", mig_mode=mig, mig_profiles=profiles)


def host(
    engine: RuntimeFacts | None = ENGINE, kubelet: KubernetesFacts = KUBELET, gpus: tuple[SmiGpu, ...] = ()
) -> HostFacts:
    return HostFacts(
        "node1",
        "node1",
        OsFacts("ubuntu", "24.04"),
        KernelFacts("6.8.0"),
        True,
        runtimes=(engine,) if engine else (),
        kubernetes=kubelet,
        driver=DriverFacts(smi=SmiFacts(0, gpus=gpus)),
    )


RUNC = replace(ENGINE, effective_default="runc")
NO_CDI = replace(ENGINE, cdi=False)
STATIC = replace(KUBELET, settings=KubeletSettings(cpu_manager="static"))
ALIKE, UNLIKE = (gpu(0, "1g.5gb", "1g.5gb"), gpu(1, "1g.5gb")), (gpu(0, "1g.5gb"), gpu(1, "2g.10gb"))
CRI = ["device-list-strategy=cdi-cri"]


@pytest.mark.parametrize(
    ("set", "runtime_class", "facts", "says"),
    [
        ([], None, host(RUNC), "starts containers by runc"),
        ([], "nvidia", host(RUNC), ""),
        ([], "nvidia", host(replace(ENGINE, name="docker")), "docker, which knows no RuntimeClass"),
        ([], None, host(replace(RUNC, name="docker")), "needs nvidia: gpunode setup --only runtime"),
        ([], "nvidia", host(replace(RUNC, handlers=("runc",))), "has no handler nvidia"),
        ([], None, host(), ""),
        ([], None, host(replace(RUNC, effective_default="nvidia-container-runtime")), ""),
        (CRI, None, host(RUNC), "the plugin's own container, whose GPUs CDI does not bring, needs nvidia"),
        (CRI, "nvidia", host(RUNC), ""),
        ([*CRI, "pass-device-specs=true"], None, host(RUNC), ""),
        (["pass-device-specs=true"], None, host(RUNC), "device-list-strategy without CDI needs nvidia"),
        (CRI, None, host(NO_CDI), "CDI is not enabled in containerd"),
        (["device-list-strategy=cdi-annotations"], None, host(NO_CDI), "CDI is not enabled in containerd"),
        (CRI, None, host(replace(ENGINE, version="1.6.20")), "needs containerd 1.7.2 or later"),
        (CRI, None, host(replace(ENGINE, version="1.7.1")), "needs containerd 1.7.2 or later"),
        (CRI, None, host(replace(ENGINE, version="1.7.2")), ""),
        (CRI, None, host(replace(ENGINE, name="crio", version="1.26.3")), "needs crio 1.27 or later"),
        (CRI, None, host(kubelet=replace(KUBELET, version="1.27.9")), "a kubelet of 1.28 or later"),
        (CRI, None, host(kubelet=replace(KUBELET, version="1.28.3")), "the feature gate DevicePluginCDIDevices"),
        (CRI, None, host(kubelet=replace(KUBELET, version="1.28.3", settings=GATE)), ""),
        (CRI, None, host(kubelet=replace(KUBELET, version="1.29.0")), ""),
        ([], None, host(kubelet=STATIC), "cpuManagerPolicy is static"),
        (["pass-device-specs=true"], None, host(kubelet=STATIC), ""),
        (CRI, None, host(kubelet=STATIC), ""),
        (["mig-strategy=single"], None, host(gpus=UNLIKE), "1g.5gb, 2g.10gb; mixed gives"),
        (["mig-strategy=single"], None, host(gpus=(*ALIKE, gpu(2, mig="Disabled"))), "2 of 3 have MIG on"),
        (["mig-strategy=single"], None, host(gpus=(*ALIKE, gpu(2))), "needs the same instances"),
        (["mig-strategy=single"], None, host(gpus=ALIKE), ""),
        (["mig-strategy=mixed"], None, host(gpus=UNLIKE), ""),
    ],
)
def test_each_rule(set: list[str], runtime_class: str | None, facts: HostFacts, says: str) -> None:
    found = list(unfit(plugin(set=set), cluster_of(None, runtime_class), facts, facts.runtimes))
    assert len(found) == bool(says)
    assert says in "".join(found)


@pytest.mark.parametrize(("in_pod", "faults"), [(True, 1), (False, 0)])
def test_with_cdi_nvidia_is_for_the_plugins_own_pod_where_it_has_one(in_pod: bool, faults: int) -> None:
    facts, silent = host(RUNC), host(replace(RUNC, effective_default=None))
    found = unfit(plugin(set=CRI), cluster_of(None, None), facts, facts.runtimes, in_pod=in_pod)
    assert len(list(found)) == faults
    assert len(list(not_known(plugin(set=CRI), silent, silent.runtimes, in_pod=in_pod))) == faults


def test_a_privileged_plugin_needs_nvidia_before_it_looks_for_nvml_in_the_drivers_root() -> None:
    facts = host(RUNC)
    for tag, faults in (("0.15", 1), ("0.16", 0)):
        one = plugin(chosen(tag, RELEASES), [*CRI, "pass-device-specs=true"])
        assert len(list(unfit(one, cluster_of(None, None), facts, facts.runtimes))) == faults, tag


def test_the_daemon_of_mps_has_no_root_of_the_driver() -> None:
    facts = host(RUNC)
    one = plugin(set=[*CRI, "pass-device-specs=true"], default=MPS)
    (fault,) = unfit(one, cluster_of(None, None), facts, facts.runtimes)
    assert "starts containers by runc" in fault


def test_mps_is_not_for_partitioned_gpus() -> None:
    assert any("2 of 2 GPUs" in one for one in unfit(plugin(default=MPS), cluster_of(None, None), host(gpus=ALIKE), ()))


def test_what_is_not_known_is_said_and_is_no_fault() -> None:
    bare = host(None, KubernetesFacts())
    one = plugin(set=[*CRI, "mig-strategy=single"])
    assert list(unfit(one, cluster_of(None, None), bare, ())) == []
    assert len(list(not_known(one, bare, ()))) == 3
    silent = host(replace(ENGINE, effective_default=None, cdi=None))
    assert any("which runtime is its default" in note for note in not_known(plugin(), silent, silent.runtimes))
    assert any("whether CDI is enabled" in note for note in not_known(plugin(set=CRI), silent, silent.runtimes))
    assert list(not_known(plugin(), host(), (ENGINE,))) == []
