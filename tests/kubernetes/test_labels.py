"""A node's labels: feature discovery's names and values where the facts have them, and nowhere a guess."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpunode.catalog.load import load_catalog
from gpunode.facts.collect import collect
from gpunode.kubernetes.label_values import is_legal, legal_value, product_value
from gpunode.kubernetes.labels import ALPHA_NAME, NodeLabels, node_labels
from gpunode.kubernetes.labels_forms import node_labels_flag
from gpunode.kubernetes.mig_labels import MIG_STRATEGIES, MigStrategy
from gpunode.model.facts import DriverFacts, HostFacts, KubernetesFacts
from gpunode.model.kubernetes import DevicePlugins, PluginConfig, SharedResource
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.transport.recorded import Recorded
from tests.planner import builders

CATALOG = load_catalog()
EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
HOSTS = sorted(path.parent.name for path in EXAMPLES.glob("*/facts.txt"))
# apimachinery's rule for a label's value and for the name in front of it, spelt a second time.
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
NAME = re.compile(r"[a-z0-9.-]{1,253}/[A-Za-z0-9][-A-Za-z0-9_.]{0,61}[A-Za-z0-9]")


def smi(*names: str, driver: str = "595.91.07", cuda: str | None = "13.2", mib: int = 81559, **more: Any) -> SmiFacts:
    addresses = [f"0000:{n:02x}:00.0" for n in range(0x19, 0x19 + len(names))]
    gpus = [SmiGpu(n, address, name) for n, (address, name) in enumerate(zip(addresses, names, strict=True))]
    return SmiFacts(0, "", driver, cuda, tuple(replace(gpu, memory_total_bytes=mib << 20, **more) for gpu in gpus))


def host(*devices: str, answer: SmiFacts | None = None, **more: Any) -> HostFacts:
    return builders.host(*devices, driver=DriverFacts(loaded="595.91.07", smi=answer), **more)


def short(found: NodeLabels) -> dict[str, str]:
    return {name.removeprefix("nvidia.com/"): value for name, value in found.values.items()}


def labels(node: HostFacts, **more: Any) -> dict[str, str]:
    return short(node_labels(node, CATALOG, **more))


H100 = "NVIDIA H100 80GB HBM3"


def test_eight_h100_have_the_labels_of_feature_discovery() -> None:
    node = host(*[builders.H100] * 8, answer=smi(*[H100] * 8), product="DGX H100 (SXM)")
    assert labels(node) == {
        "cuda.driver-version.full": "595.91.07",
        "cuda.driver-version.major": "595",
        "cuda.driver-version.minor": "91",
        "cuda.driver-version.revision": "07",
        "cuda.driver.major": "595",
        "cuda.driver.minor": "91",
        "cuda.driver.rev": "07",
        "cuda.runtime-version.full": "13.2",
        "cuda.runtime-version.major": "13",
        "cuda.runtime-version.minor": "2",
        "cuda.runtime.major": "13",
        "cuda.runtime.minor": "2",
        "gpu.compute.major": "9",
        "gpu.compute.minor": "0",
        "gpu.count": "8",
        "gpu.family": "hopper",
        "gpu.machine": "DGX-H100-SXM",
        "gpu.memory": "81559",
        "gpu.mode": "compute",
        "gpu.present": "true",
        "gpu.product": "NVIDIA-H100-80GB-HBM3",
        "mig.capable": "true",
        "vgpu.present": "false",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Tesla P100-PCIE-16GB", "Tesla-P100-PCIE-16GB"),  # the blank is refused by every server
        ("NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA RTX 6000 Ada Generation", "NVIDIA-RTX-6000-Ada-Generation"),
        ("NVIDIA GeForce RTX 4080 SUPER", "NVIDIA-GeForce-RTX-4080-SUPER"),
        ("Graphics Device (rev 1)", "Graphics-Device-rev-1"),
        ("  two   blanks ", "two-blanks"),
        ("-.x._", "x"),
        ("x" * 62 + " y", "x" * 62),
        ("Größe", "Gre"),
        ("\x1b[2J", "2J"),
        ("()", ""),
    ],
)
def test_a_product_becomes_a_legal_value(name: str, value: str) -> None:
    assert product_value(name) == value


@given(st.text(max_size=200))
def test_any_text_becomes_a_legal_value(text: str) -> None:
    for value in (product_value(text), legal_value(text)):
        assert VALUE.fullmatch(value)
        assert len(value) <= 63
        assert is_legal(value)


@pytest.mark.parametrize("slug", HOSTS)
def test_every_sample_host_has_legal_labels(slug: str) -> None:
    facts = collect(Recorded((EXAMPLES / slug / "facts.txt").read_bytes(), slug))
    for strategy in MIG_STRATEGIES:
        for kubernetes in (None, (1, 15), (1, 34)):
            found = node_labels(facts, CATALOG, mig_strategy=strategy, kubernetes=kubernetes)
            assert all(NAME.fullmatch(name) and VALUE.fullmatch(value) for name, value in found.values.items())
            assert all(len(value) <= 63 for value in found.values.values())
            assert not set(found.values) & set(found.left_out)
            assert all(found.left_out.values())


@pytest.mark.parametrize(
    ("device", "family"),
    [(builders.K80, "kepler"), (builders.P100, "pascal"), (builders.V100, "volta"), (builders.T4, "turing"),
     (builders.A100, "ampere"), (builders.L4, "ada-lovelace"), (builders.H100, "hopper"), (builders.B200, "blackwell")],
)  # fmt: skip
def test_families_by_feature_discoverys_names(device: str, family: str) -> None:
    assert labels(host(device))["gpu.family"] == family


def test_a_gpu_that_the_catalog_does_not_know_has_no_family() -> None:
    found = node_labels(host("ffff"), CATALOG)
    assert "nvidia.com/gpu.family" not in found.values
    assert "catalog" in found.left_out["nvidia.com/gpu.family"]


def test_two_models_have_the_labels_of_the_more_numerous() -> None:
    node = host(builders.H100, builders.L4, builders.L4, answer=smi(H100, "NVIDIA L4", "NVIDIA L4", mib=23034))
    found = labels(node)
    assert (found["gpu.product"], found["gpu.count"], found["gpu.family"]) == ("NVIDIA-L4", "2", "ada-lovelace")


def test_what_nvidia_smi_did_not_say_is_left_out_with_the_reason() -> None:
    node = host(builders.H100, unread={"smi": "a GPU is suspended and would be woken"})
    found = node_labels(node, CATALOG)
    assert "nvidia.com/gpu.product" not in found.values
    assert "suspended" in found.left_out["nvidia.com/gpu.product"]
    assert found.values["nvidia.com/cuda.driver-version.full"] == "595.91.07"  # the module itself says so


def test_a_lost_gpu_is_not_counted() -> None:
    answer = smi(H100, H100)
    answer = replace(answer, gpus=(answer.gpus[0], SmiGpu(1, "0000:1a:00.0", "", fault="lost")))
    assert labels(host(builders.H100, builders.H100, answer=answer))["gpu.count"] == "1"


def test_no_gpu_no_label() -> None:
    found = node_labels(host(), CATALOG)
    assert not found.values
    assert found.left_out == {"nvidia.com/gpu.present": "there is no NVIDIA GPU"}


def test_a_virtual_machine_does_not_say_that_it_has_no_vgpu() -> None:
    found = node_labels(host(builders.T4, virtualization="QEMU"), CATALOG)
    assert "virtual machine" in found.left_out["nvidia.com/vgpu.present"]


@pytest.mark.parametrize(
    ("version", "revision", "full"),
    [
        ("550.163.01", "01", "550.163.01"),
        ("340.108", "", "340.108"),
        ("garbage", None, None),
        (None, "07", "595.91.07"),
    ],
)
def test_parts_of_the_drivers_version(version: str | None, revision: str | None, full: str | None) -> None:
    answer = replace(smi(H100), driver_version=version)
    found = labels(host(builders.H100, answer=answer))
    assert (found.get("cuda.driver-version.revision"), found.get("cuda.driver-version.full")) == (revision, full)


@pytest.mark.parametrize("cuda", [None, "N/A", "13", "13.2.1", "1" * 40 + ".0"])
def test_an_odd_cuda_version_is_left_out(cuda: str | None) -> None:
    assert not [name for name in labels(host(builders.H100, answer=smi(H100, cuda=cuda))) if "runtime" in name]


# --- MIG ---

SEVEN: dict[str, Any] = {"mig_mode": "Enabled", "mig_profiles": ("1g.10gb",) * 7}


@pytest.mark.parametrize(
    ("strategy", "more", "expected"),
    [
        ("none", SEVEN, {"gpu.product": "NVIDIA-H100-80GB-HBM3", "gpu.count": "2", "mig.strategy": None}),
        ("single", SEVEN, {"gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "gpu.count": "14", "gpu.slices.gi": "1",
                           "gpu.memory": None, "mig.strategy": "single"}),
        ("single", {"mig_mode": "Enabled", "mig_profiles": ("1g.10gb", "2g.20gb")},
         {"gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID", "gpu.count": "0", "gpu.memory": "0"}),
        ("single", {"mig_mode": "Enabled"}, {"gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID", "gpu.replicas": "0"}),
        ("single", {"mig_mode": "Disabled"}, {"gpu.product": "NVIDIA-H100-80GB-HBM3", "gpu.count": "2"}),
        ("mixed", {"mig_mode": "Enabled", "mig_profiles": ("1g.10gb+me", "1c.2g.20gb")},
         {"gpu.count": "2", "mig-1g.10gb.me.count": "2",
          "mig-1g.10gb.me.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me",
          "mig-1c.2g.20gb.slices.gi": "2", "mig-1c.2g.20gb.slices.ci": "1", "mig-1g.10gb.me.memory": None}),
    ],
    ids=["none", "single", "single with two profiles", "single and empty", "single without MIG", "mixed"],
)  # fmt: skip
def test_mig_strategies(strategy: MigStrategy, more: dict[str, Any], expected: dict[str, str | None]) -> None:
    node = host(builders.H100, builders.H100, answer=smi(H100, H100, **more))
    found = labels(node, mig_strategy=strategy)
    assert {name: found.get(name) for name in expected} == expected


# --- sharing ---


def shared(*configs: PluginConfig) -> KubernetesFacts:
    return KubernetesFacts(device_plugins=DevicePlugins("/d", sockets={"nvidia-gpu.sock": True}, configs=configs))


FOUR = (SharedResource("nvidia.com/gpu", 4),)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ((), ("1", "none", "false", "NVIDIA-H100-80GB-HBM3")),
        ((PluginConfig("c", time_slicing=FOUR),), ("4", "time-slicing", "false", "NVIDIA-H100-80GB-HBM3-SHARED")),
        ((PluginConfig("c", mps=FOUR),), ("4", "mps", "true", "NVIDIA-H100-80GB-HBM3-SHARED")),
        ((PluginConfig("c", unread="odd"),), (None, None, None, "NVIDIA-H100-80GB-HBM3")),
        ((PluginConfig("a"), PluginConfig("b", mps=FOUR)), (None, None, None, "NVIDIA-H100-80GB-HBM3")),
        ((PluginConfig("c", mps=(SharedResource("nvidia.com/gpu", None),)),),
         (None, None, None, "NVIDIA-H100-80GB-HBM3")),
    ],
    ids=["no configuration", "time slicing", "MPS", "not read", "two of them", "no number"],
)  # fmt: skip
def test_what_the_plugins_configuration_decides(configs: tuple[PluginConfig, ...], expected: tuple[str, ...]) -> None:
    found = labels(host(builders.H100, answer=smi(H100), kubernetes=shared(*configs)))
    names = ("gpu.replicas", "gpu.sharing-strategy", "mps.capable", "gpu.product")
    assert tuple(found.get(name) for name in names) == expected


SLICED = PluginConfig("c", time_slicing=FOUR)


@pytest.mark.parametrize(
    ("strategy", "config", "expected"),
    [
        ("none", PluginConfig("c", time_slicing=(SharedResource("nvidia.com/gpu", 4, renamed=True),)),
         {"gpu.product": "NVIDIA-H100-80GB-HBM3", "gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"}),
        ("single", SLICED,
         {"gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", "gpu.replicas": "4", "gpu.count": "14",
          "gpu.sharing-strategy": "time-slicing"}),
        ("mixed", PluginConfig("c", time_slicing=(SharedResource("nvidia.com/mig-1g.10gb", 4),)),
         {"mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", "mig-1g.10gb.replicas": "4",
          "mig-1g.10gb.sharing-strategy": "time-slicing", "gpu.product": "NVIDIA-H100-80GB-HBM3",
          "gpu.replicas": "0"}),
        ("mixed", SLICED,
         {"mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "mig-1g.10gb.replicas": "1",
          "mig-1g.10gb.sharing-strategy": "none", "gpu.replicas": "0"}),
        ("mixed", PluginConfig("c", unread="odd"),
         {"mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "mig-1g.10gb.replicas": None,
          "mig-1g.10gb.sharing-strategy": None}),
    ],
    ids=["a name of its own", "instances for GPUs", "instances", "GPUs, of which there are none", "not known"],
)  # fmt: skip
def test_what_is_shared_is_labelled_so(
    strategy: MigStrategy, config: PluginConfig, expected: dict[str, str | None]
) -> None:
    more = {} if strategy == "none" else SEVEN
    node = host(builders.H100, builders.H100, answer=smi(H100, H100, **more), kubernetes=shared(config))
    found = labels(node, mig_strategy=strategy)
    assert {name: found.get(name) for name in expected} == expected


def test_why_nobody_knows_whether_instances_are_shared_is_told() -> None:
    node = host(builders.H100, answer=smi(H100, **SEVEN), kubernetes=shared(PluginConfig("c", unread="odd")))
    found = node_labels(node, CATALOG, mig_strategy="mixed")
    assert "which is in force is not known" in (found.why_unknown("nvidia.com/mig-1g.10gb.replicas") or "")


# --- the way to the node ---


@pytest.mark.parametrize(
    ("kubernetes", "there"), [((1, 8), True), ((1, 15), True), ((1, 16), False), ((1, 37), False), (None, False)]
)
def test_the_old_name_is_for_clusters_before_1_16(kubernetes: tuple[int, int] | None, there: bool) -> None:
    node = host(builders.P100, answer=smi("Tesla P100-PCIE-16GB"))
    found = node_labels(node, CATALOG, kubernetes=kubernetes).values
    assert (found.get(ALPHA_NAME) == "Tesla-P100-PCIE-16GB") is there
    assert (ALPHA_NAME in node_labels_flag(found, kubernetes)) is there
