"""An expectation is compared word by word, says what was wanted and what was found, and names what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.causes import folded
from gpunode.errors import UsageError
from gpunode.model.entities import EntityKind
from gpunode.model.facts import HostFacts, KubernetesFacts
from gpunode.model.report import CheckOutcome, Finding
from gpunode.model.smi import SmiFacts
from gpunode.model.spec import Spec
from gpunode.specfile import KEYS, parse_spec, put_all, spec_text
from tests.checks import expectations
from tests.checks import hosts as h


def outcome(key: str, value: str, host: HostFacts = h.READY) -> CheckOutcome:
    """Of the check of one expectation."""
    spec = put_all(Spec(), {f"expect.{key}": value})
    return run_all(host, spec, load_catalog(), h.TODAY).results[f"expect.{key.replace('_', '-')}"].outcome


@pytest.mark.parametrize(
    ("key", "value", "host"),
    [
        ("driver", "595", h.READY),
        ("model", "2330", h.READY),
        ("model", "h100 sxm5 80gb", h.READY),
        ("cuda", "12.8+", h.smi(h.SEEN, cuda_version="13.2")),
        ("cuda", "13.2+", h.smi(h.SEEN, cuda_version="13.2")),
        ("cuda", "9.2+", h.smi(h.SEEN, cuda_version="13.0")),
        ("nics", "8", h.READY),
        ("nics", "0", h.system(rdma=())),
        ("nics", "8", h.port(state="DOWN")),
        ("os", "debian", h.READY),
        ("default_runtime", "docker=nvidia", h.containerd(effective_default="runc")),
        ("handler", "nvidia", replace(h.containerd(handlers=(), effective_default=None, cri_error="no CRI"),
                                      kubernetes=KubernetesFacts())),
        ("engines", "docker", h.docker(version=None)),
    ],
    ids=[
        "a branch is any of its versions",
        "a model by its PCI device id",
        "a model by its name, in any case",
        "a newer CUDA than the least one",
        "the least CUDA itself",
        "versions are no decimals",
        "ports without a rate are counted",
        "none are expected and none are there",
        "a count says nothing of the link",
        "any release of a distribution",
        "one engine of two",
        "a containerd that only docker uses has no handlers",
        "an engine of any version need not say its own",
    ],
)  # fmt: skip
def test_what_is_as_expected_passes(key: str, value: str, host: HostFacts) -> None:
    assert outcome(key, value, host) is None


@pytest.mark.parametrize(
    ("key", "value", "host", "said"),
    [
        ("driver", "580", h.READY, "driver: 580 is expected, 595.91.07 was found"),
        ("driver", "595.91", h.READY, "driver: 595.91 is expected, 595.91.07 was found"),
        ("cuda", "13.0+", h.smi(h.SEEN, cuda_version="12.8"), "CUDA: 13.0+ is expected, 12.8 was found"),
        ("cuda", "12.8", h.smi(h.SEEN, cuda_version="13.0"), "CUDA: 12.8 is expected, 13.0 was found"),
        ("model", "2330,27b8", h.READY, "GPU model: 2330, 27b8 is expected, H100 SXM5 80GB was found"),
        ("engines", "podman", h.READY, "podman is expected, docker=28.5.2, containerd=1.7.27 was found"),
        ("default_runtime", "crio=nvidia", h.READY, "crio=nvidia is expected, no crio was found"),
        ("nics", "4", h.READY, "RDMA ports: 4 is expected, 8x400 was found"),
    ],
)  # fmt: skip
def test_the_finding_says_wanted_and_found(key: str, value: str, host: HostFacts, said: str) -> None:
    found = outcome(key, value, host)
    assert isinstance(found, Finding)
    assert said in found.summary
    assert f"expect.{key}: wanted " in found.evidence


@pytest.mark.parametrize(
    ("key", "value", "host", "kind", "names"),
    [
        ("model", "H100 SXM5 80GB", h.host(pci=(h.GPU, expectations.OTHER_GPU)), EntityKind.PCI, ["0000:61:00.0"]),
        ("numa", "0=2", h.gpu(), EntityKind.PCI, [h.GPU.address]),
        ("nics", "8x400", h.port(state="DOWN"), EntityKind.PCI, ["0000:0a:00.0"]),
        ("handler", "nvidia", h.docker(handlers=("runc",)), EntityKind.UNIT, ["docker.service"]),
        ("engines", "docker=1", h.READY, EntityKind.UNIT, ["docker.service"]),
        ("default_runtime", "runc", h.docker(effective_default="runc"), EntityKind.UNIT, ["containerd.service"]),
        ("mig", "all=off", expectations.CUT, EntityKind.PCI, [h.GPU.address]),
    ],
)
def test_the_finding_names_what_differs(
    key: str, value: str, host: HostFacts, kind: EntityKind, names: list[str]
) -> None:
    found = outcome(key, value, host)
    assert isinstance(found, Finding)
    assert [one.name for one in found.entities if one.kind is kind] == names


def test_a_cuda_that_nobody_says_is_no_other_cuda() -> None:
    for smi in (None, SmiFacts(9, "no driver"), SmiFacts(0, driver_version=h.V)):
        found = outcome("cuda", "13.0", h.driver(smi=smi))
        assert isinstance(found, Finding)
        assert "does not say: nvidia-smi" in found.evidence


@pytest.mark.parametrize(("id", "host", "said"), expectations.UNSAID)
def test_what_this_host_does_not_say_is_a_warning(id: str, host: HostFacts, said: str) -> None:
    report = run_all(host, Spec(expect=expectations.EXPECTED), load_catalog(), h.TODAY)
    assert id in [result.id for result in report.warnings]
    found = report.findings[id]
    assert found.summary.endswith("is expected, this host does not say")
    assert said in found.evidence
    assert "leave expect." in str(found.remedy.parts[0])


def test_what_root_alone_can_read_is_to_be_read_as_root() -> None:
    found = outcome("numa", "0=1", replace(expectations.NO_BUS, root=False))
    assert isinstance(found, Finding)
    assert found.remedy.parts[0] == "check again as root; else leave expect.numa out"


@pytest.mark.parametrize(
    ("cause", "id", "host"),
    [
        ("user.smi-works", "expect.cuda", h.driver(smi=SmiFacts(18, "mismatch"))),
        ("user.smi-works", "expect.mig", h.driver(smi=SmiFacts(18, "mismatch"))),
        ("rt.present", "expect.engines", h.docker(active=False)),
        ("rt.present", "expect.handler", h.host(runtimes=(replace(h.DOCKER_ENGINE, active=False),))),
    ],
)
def test_what_is_not_said_for_a_cause_stands_below_it(cause: str, id: str, host: HostFacts) -> None:
    report = folded(run_all(host, Spec(expect=expectations.EXPECTED), load_catalog(), h.TODAY))
    assert report.findings[id].cause == cause


def test_every_expectation_has_its_check_and_the_other_way_round() -> None:
    ids = {id for id in run_all(h.READY, None, load_catalog()).results if id.startswith("expect.")}
    keys = {key.replace("_", "-") for key in KEYS if key.startswith("expect.")}
    assert ids == keys - {"expect.gpus"}  # pci.expected-count


def test_an_expectation_is_read_back_as_it_was() -> None:
    spec = Spec(expect=replace(expectations.EXPECTED, cuda="12.8+"))
    assert parse_spec(spec_text(spec)) == spec


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("driver", "58"), ("driver", "580; rm -rf /"), ("cuda", "13"), ("flavour", "closed"), ("nics", "8x"),
        ("numa", "0"), ("model", "H100\nL4"), ("kernel", "$(reboot)"), ("os", "ubuntu 24.04 lts"), ("mig", "all"),
        ("engines", ",".join(f"docker{n}" for n in range(65))), ("engines", ""), ("nvswitches", "-1"),
    ],
)  # fmt: skip
def test_an_expectation_of_an_odd_form_is_refused(key: str, value: str) -> None:
    with pytest.raises(UsageError):
        put_all(Spec(), {f"expect.{key}": value})
