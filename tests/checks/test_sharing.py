"""GPUs that pods share, and the GPU Operator's images: a pass, each fault with its evidence, and why not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.causes import folded
from gpunode.model.facts import HostFacts, KubernetesFacts
from gpunode.model.kubernetes import UNNAMED, PluginConfig, SharedResource
from gpunode.model.report import Finding, NotApplicable, Severity
from tests.checks import hosts as h
from tests.checks.test_k8s import BARE, ENDS, NEVER, PLUGIN, WELL, kubernetes, node, outcome, plugins

IDS = ("k8s.sharing-config", "mig.uniform", "mig.mixed-with-mps", "sec.operator-cve")
FOUR = (SharedResource("nvidia.com/gpu", 4),)
SLICED = PluginConfig("available-configs/config.yaml", "v1", time_slicing=FOUR)
MPS = replace(SLICED, time_slicing=(), mps=FOUR)
OTHER = h.seen(index=1, pci_address="0000:61:00.0", mig_mode="Enabled", mig_profiles=("2g.20gb",))
OPERATOR = "nvcr.io/nvidia/cloud-native/gpu-operator-validator:"
TOOLKIT = "nvcr.io/nvidia/k8s/container-toolkit:"
NEW = (f"{OPERATOR}v26.3.2", f"{TOOLKIT}v1.19.1-ubuntu20.04", "nvcr.io/nvidia/k8s-device-plugin:v0.18.0")


def configs(*found: PluginConfig, on: HostFacts = WELL, **options: str) -> HostFacts:
    return plugins(on, configs=found, options=options)


def cut(*profiles: tuple[str, ...] | None) -> HostFacts:
    """GPUs with these instances; None: MIG is off."""
    gpus = tuple(
        h.seen(index=n, pci_address=f"0000:{n}1:00.0", mig_mode="Disabled" if of is None else "Enabled",
               mig_profiles=of or ())
        for n, of in enumerate(profiles, 4)
    )  # fmt: skip
    return replace(h.smi(*gpus), kubernetes=WELL.kubernetes)


def single(*profiles: tuple[str, ...] | None) -> HostFacts:
    return configs(on=cut(*profiles), MIG_STRATEGY="single")


def images(*names: str) -> HostFacts:
    return node(images=names)


TWICE = replace(SLICED, mps=FOUR)
PASSES: tuple[tuple[str, HostFacts], ...] = (
    ("k8s.sharing-config", configs(SLICED)),
    ("k8s.sharing-config", configs(replace(SLICED, version=None))),
    ("k8s.sharing-config", configs(MPS, replace(SLICED, name="available-configs/other"))),
    ("k8s.sharing-config", configs(PluginConfig("available-configs/config.yaml", "v1", "mixed"))),
    ("mig.uniform", single(("1g.10gb",) * 7, ("1g.10gb",) * 3)),
    ("mig.uniform", single(None, None)),
    ("mig.mixed-with-mps", configs(MPS, on=cut(None))),
    ("mig.mixed-with-mps", configs(MPS)),
    ("sec.operator-cve", images(*NEW)),
    ("sec.operator-cve", images(f"{OPERATOR}v24.6.1", f"{TOOLKIT}v1.16.1", *NEW)),
    ("sec.operator-cve", images("mirror:5000/gpu-operator:v26.7.0@sha256:00")),
)
FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("k8s.sharing-config", configs(replace(SLICED, version="v2")), "config.yaml: version is v2, and the plugin knows"),
    ("k8s.sharing-config", configs(replace(SLICED, time_slicing=(), bare=("timeSlicing",))), "names no resource"),
    ("k8s.sharing-config", configs(replace(SLICED, time_slicing=(SharedResource(UNNAMED, 4),))), UNNAMED),
    ("k8s.sharing-config", configs(replace(SLICED, odd_flags=("timeSlicing.renameByDefault",))),
     "config.yaml: timeSlicing.renameByDefault is neither true nor false"),
    ("k8s.sharing-config", configs(TWICE), "timeSlicing and mps are both there, and exclude each other"),
    ("k8s.sharing-config", configs(replace(SLICED, time_slicing=(SharedResource("nvidia.com/gpu", 1),))),
     "replicas of nvidia.com/gpu is 1, at least 2 are wanted"),
    ("k8s.sharing-config", configs(replace(MPS, mps=(SharedResource("nvidia.com/gpu", None),))), "is no number"),
    ("k8s.sharing-config", configs(SLICED, replace(MPS, name="a/b", version="1")), "a/b: version is 1"),
    ("mig.uniform", single(("1g.10gb",), ("2g.20gb",)),
     "single by MIG_STRATEGY of the device plugin; nvidia-smi -L: 0000:41:00.0: 1g.10gb; 0000:51:00.0: 2g.20gb"),
    ("mig.uniform", single(("1g.10gb", "2g.20gb")), "1g.10gb, 2g.20gb"),
    ("mig.uniform", single(("7g.80gb",), None), "0000:51:00.0: MIG off"),
    ("mig.uniform", configs(replace(SLICED, mig_strategy="single"), on=cut(("7g.80gb",), None)), "single by available"),
    ("mig.uniform", plugins(node(cut(("7g.80gb",), None), labels={"nvidia.com/mig.strategy": "single"}), options=None),
     "single by the node's label nvidia.com/mig.strategy"),
    ("mig.mixed-with-mps", configs(MPS, on=cut(None, ("7g.80gb",))),
     "available-configs/config.yaml has sharing.mps; nvidia-smi -q -x, 0000:51:00.0: current_mig Enabled"),
    ("mig.mixed-with-mps", node(cut(("7g.80gb",)), labels={"nvidia.com/gpu.sharing-strategy": "mps"}),
     "the node's label nvidia.com/gpu.sharing-strategy is mps"),
    ("sec.operator-cve", images(f"{OPERATOR}v24.6.1"), f"has the image {OPERATOR}v24.6.1"),
    ("sec.operator-cve", images(f"{OPERATOR}v25.3.0-ubi9", NEW[1]), f"has the image {OPERATOR}v25.3.0-ubi9"),
    ("sec.operator-cve", images(f"{OPERATOR}v25.3.1-rc.1", f"{OPERATOR}v24.9.2"), "v24.9.2"),
    ("sec.operator-cve", images(NEW[0], f"{TOOLKIT}v1.17.8-ubuntu20.04"), f"{TOOLKIT}v1.17.8-ubuntu20.04"),
    ("sec.operator-cve", plugins(images(f"{OPERATOR}v24.6.1"), pods=None), "v24.6.1"),
)  # fmt: skip
UNKNOWN: tuple[tuple[str, HostFacts, str], ...] = (
    *((id, replace(WELL, kubernetes=KubernetesFacts()), "Kubernetes is not on this host") for id in IDS),
    *((id, kubernetes(device_plugins=None), "the kubelet's directory was not read") for id in IDS[:3]),
    *((id, NEVER, "k8s.dp-container") for id in IDS[:3]),
    *((id, kubernetes(joined=False), "has not joined a cluster") for id in IDS),
    *((id, replace(single(None), driver=replace(WELL.driver, smi=None)), "nvidia-smi was not run") for id in IDS[1:3]),
    ("k8s.sharing-config", plugins(configs=None), "volumes of the device plugin's pod were not read"),
    ("k8s.sharing-config", configs(), "no GPU is shared"),
    ("k8s.sharing-config", configs(CONFIG_FILE="/config/config.yaml"), "from /config/config.yaml, which is in none"),
    ("k8s.sharing-config", configs(replace(SLICED, unread="it is not written in lines")), "it is not written in lines"),
    ("mig.uniform", configs(on=cut(("1g.10gb",), None), MIG_STRATEGY="mixed"), "the MIG strategy is mixed (MIG_STRAT"),
    ("mig.uniform", configs(on=cut(("1g.10gb",), None)), "the MIG strategy is none (the device plugin's default)"),
    ("mig.uniform", plugins(cut(None), options=None, configs=(replace(SLICED, mig_strategy="single"),)), "not known"),
    ("mig.uniform", configs(SLICED, MPS, on=cut(None)), "is not known"),
    ("mig.uniform", single((), ()), "mig.layout-vs-wanted"),
    ("mig.uniform", configs(on=replace(h.smi(h.seen("use", h.seen(mig_mode="Enabled"), mig_devices=2)),
                                       kubernetes=WELL.kubernetes), MIG_STRATEGY="single"), "does not name the inst"),
    ("mig.uniform", configs(MIG_STRATEGY="single", on=replace(h.smi(h.seen(mig_mode=None)),
                                                             kubernetes=WELL.kubernetes)), "no MIG mode"),
    ("mig.mixed-with-mps", configs(SLICED), "does not share GPUs by MPS"),
    ("mig.mixed-with-mps", configs(), "does not share GPUs by MPS"),
    ("mig.mixed-with-mps", plugins(), "is not known"),
    ("mig.mixed-with-mps", configs(SLICED, replace(MPS, name="a/b")), "is not known"),
    ("sec.operator-cve", plugins(node(images=NEW), pods=(PLUGIN,)), "does not manage this node"),
    ("sec.operator-cve", plugins(node(images=()), pods=None), "whether the GPU Operator manages this node is not"),
    ("sec.operator-cve", WELL, "which images are on this node was not asked"),
    ("sec.operator-cve", replace(kubernetes(node=None), unread={"node": "no kubectl of root"}), "no kubectl of root"),
    ("sec.operator-cve", images("nvcr.io/nvidia/gpu-operator:main"), "names no release"),
    ("sec.operator-cve", images("nvcr.io/nvidia/gpu-operator:v" + "9" * 5000), "names no release"),
)  # fmt: skip


@pytest.mark.parametrize(("id", "host"), PASSES)
def test_what_is_well_passes(id: str, host: HostFacts) -> None:
    assert outcome(id, host) is None


@pytest.mark.parametrize(("id", "host", "quoted"), [pytest.param(*row, id=f"{row[0]}: {row[2]}") for row in FAULTS])
def test_a_fault_is_found_and_quoted(id: str, host: HostFacts, quoted: str) -> None:
    found = outcome(id, host)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert found.remedy


@pytest.mark.parametrize(("id", "host", "reason"), [pytest.param(*row, id=f"{row[0]}: {row[2]}") for row in UNKNOWN])
def test_what_is_not_known_says_why(id: str, host: HostFacts, reason: str) -> None:
    told = outcome(id, host)
    assert isinstance(told, NotApplicable)
    assert reason in told.reason


@pytest.mark.parametrize("id", IDS)
def test_each_has_a_row_of_every_kind(id: str) -> None:
    assert all(any(row[0] == id for row in rows) for rows in (PASSES, FAULTS, UNKNOWN))
    assert isinstance(outcome(id, BARE), NotApplicable)


def test_a_label_chooses_among_the_configurations_and_the_file_does_without_one() -> None:
    found = (SLICED, replace(MPS, name="available-configs/mps"))
    labelled = node(configs(*found, on=cut(("7g.80gb",))), labels={"nvidia.com/device-plugin.config": "mps"})
    assert isinstance(outcome("mig.mixed-with-mps", labelled), Finding)
    named = configs(*found, on=cut(("7g.80gb",)), CONFIG_FILE="/config/mps")
    assert isinstance(outcome("mig.mixed-with-mps", named), Finding)


def test_the_newest_fix_is_named_with_all_that_it_mends() -> None:
    found = outcome("sec.operator-cve", images(f"{OPERATOR}v24.9.0"))
    assert isinstance(found, Finding)
    assert found.summary == "GPU Operator 24.9.0 has CVE-2025-23359, CVE-2025-23266, CVE-2026-24260, fixed in 26.3.2"


def test_a_plugin_that_ends_over_its_configuration_is_the_configurations_fault() -> None:
    ended = (replace(PLUGIN, restarts=7),)
    host = plugins(ENDS, pods=ended, processes=(), sockets={}, registered={}, configs=(TWICE,))
    report = folded(run_all(host, None, load_catalog(), today=h.TODAY))
    cause = next(cause for cause in report.causes if cause.id == "k8s.sharing-config")
    assert cause.found is Severity.WARNING
    assert "k8s.dp-container" in [result.id for result in report.consequences(cause)]
