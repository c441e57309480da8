"""What check says of the MIG layout is what setup would change, and where it would change nothing it says nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.model.facts import HostFacts, ServiceFacts
from gpunode.model.plan import Step
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import Spec, parse_mig
from gpunode.planner.mig import UNIT, mig_outcome
from gpunode.planner.site import survey
from tests.checks import hosts as h

CATALOG = load_catalog()
OTHER = h.seen("", h.SEEN, index=1, pci_address="0000:61:00.0")


def cut(*profiles: str, mode: str = "Enabled") -> HostFacts:
    """A host of one H100 with these instances."""
    return h.smi(
        h.seen("use", h.seen(mig_mode=mode, mig_pending=mode, mig_profiles=profiles), mig_devices=len(profiles))
    )


def outcome(host: HostFacts, text: str | None) -> CheckOutcome:
    spec = Spec(mig=parse_mig(text) if text else None)
    return run_all(host, spec, CATALOG, today=h.TODAY).results["mig.layout-vs-wanted"].outcome


@pytest.mark.parametrize(
    ("host", "text", "quoted"),
    [
        (cut("3g.40gb"), "all=3g.40gb:2", "3g.40gb; the spec: all=3g.40gb:2"),
        (cut(mode="Disabled"), "2330=3g.40gb:2", "MIG off; the spec: 2330=3g.40gb:2"),
        (cut("3g.40gb", "3g.40gb"), "all=off", "3g.40gb, 3g.40gb; the spec: all=off"),
        (cut(), "all=1g.10gb:7", "no instance; the spec: all=1g.10gb:7"),
        (cut(), "all=off", "no instance; the spec: all=off"),
        (cut("3g.40gb", "3g.40gb"), "all=3g.40gb:2,h100 sxm5 80gb=7g.80gb", "the spec: h100 sxm5 80gb=7g.80gb"),
    ],
    ids=[
        "one instance too few",
        "MIG is off",
        "MIG is on",
        "no instance",
        "no instance, and to be off",
        "the name is closer than all",
    ],
)
def test_a_layout_that_setup_would_change_is_found(host: HostFacts, text: str, quoted: str) -> None:
    found = outcome(host, text)
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert found.remedy.command == ("gpunode", "setup", "--only", "driver")
    step = mig_outcome(survey(host, Spec(mig=parse_mig(text)), CATALOG))
    assert isinstance(step, Step)
    assert step.id in found.steps
    assert "differ from the spec" in step.why


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (cut("3g.40gb", "3g.40gb"), "all=3g.40gb:2"),
        (cut("1g.10gb", "2g.20gb", "1g.10gb"), "all=1g.10gb:2,2g.20gb"),
        (cut(mode="Disabled"), "all=off"),
    ],
)
def test_a_layout_that_is_there_passes(host: HostFacts, text: str) -> None:
    assert outcome(host, text) is None
    step = mig_outcome(survey(host, Spec(mig=parse_mig(text)), CATALOG))
    assert isinstance(step, Step)
    assert "applied already" in step.title


def at_boot(host: HostFacts, enabled: str, load: str = "loaded") -> HostFacts:
    """gpunode's unit is in this state."""
    return replace(host, services={**host.services, UNIT: ServiceFacts(load, enabled=enabled)})


@pytest.mark.parametrize(
    ("enabled", "load"),
    [("", "not-found"), ("disabled", "loaded"), ("enabled-runtime", "loaded"), ("masked", "masked")],
)
def test_a_layout_that_the_next_boot_takes_away_is_found(enabled: str, load: str) -> None:
    host = at_boot(cut("3g.40gb", "3g.40gb"), enabled, load)
    found = outcome(host, "all=3g.40gb:2")
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert f"{UNIT}: LoadState {load}, UnitFileState {enabled or 'none'}" in found.evidence
    step = mig_outcome(survey(host, Spec(mig=parse_mig("all=3g.40gb:2")), CATALOG))
    assert step
    assert found.steps == ((step.id,) if isinstance(step, Step) else ())
    assert ("systemctl unmask" in found.remedy.text) is (enabled == "masked")


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (at_boot(cut("3g.40gb", "3g.40gb"), "enabled"), "all=3g.40gb:2"),
        (at_boot(cut(mode="Disabled"), "disabled"), "all=off"),
        (replace(at_boot(cut("3g.40gb", "3g.40gb"), "", "not-found"), init="openrc"), "all=3g.40gb:2"),
    ],
    ids=["the unit makes it again", "nothing is lost", "no systemd"],
)
def test_what_a_boot_does_not_take_away_passes(host: HostFacts, text: str) -> None:
    assert outcome(host, text) is None


@pytest.mark.parametrize(
    ("host", "text", "reason"),
    [
        (
            h.smi(h.seen("use", h.seen(mig_mode="Enabled"), mig_devices=2)),
            "all=3g.40gb:2",
            "does not name the instances",
        ),
        (cut("3g.40gb"), "l4=off", "MIG mode of a wanted layout"),
        (h.smi(h.seen(mig_mode=None)), "all=3g.40gb:2", "no MIG mode"),
    ],
    ids=["instances without names", "of another GPU", "a GPU without MIG"],
)
def test_what_cannot_be_compared_is_no_pass(host: HostFacts, text: str, reason: str) -> None:
    found = outcome(host, text)
    assert isinstance(found, NotApplicable)
    assert reason in found.reason


def test_without_a_layout_in_the_spec_only_a_gpu_that_nothing_can_use_is_found() -> None:
    found = outcome(cut(), None)
    assert isinstance(found, Finding)
    assert found.severity is Severity.WARNING
    assert "nvidia-smi -i 0000:41:00.0 -mig 0" in found.remedy.text
    assert outcome(cut("3g.40gb"), None) is None


def test_the_gpu_that_differs_is_the_one_that_is_named() -> None:
    fits = cut("3g.40gb", "3g.40gb")
    assert fits.driver.smi is not None
    wrong = h.seen("use", replace(OTHER, mig_mode="Enabled", mig_profiles=("7g.80gb",)), mig_devices=1)
    two = h.smi(*fits.driver.smi.gpus, wrong)
    found = outcome(replace(two, pci=(h.GPU, replace(h.GPU, address=OTHER.pci_address))), "all=3g.40gb:2")
    assert isinstance(found, Finding)
    assert found.summary == "0000:61:00.0 is not partitioned as the spec says"
