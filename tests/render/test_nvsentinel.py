"""HealthEvents by the names and types of NVSentinel's message: what is healthy, what is fatal, and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpunode.errors import ExitCode
from gpunode.model.entities import gpu, pci, place, unit
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, Severity
from gpunode.remedy import Remedy, RepairAction
from gpunode.render.nvsentinel import health_events, recommended
from tests.render.hostile import HOSTILE, SECRET, lost_outcome, odd_outcome
from tests.render.values import CHECK

# data-models/protobufs/health_event.proto: the fields of HealthEvent that gpunode fills, and of RecommendedAction.
FIELDS: dict[str, type] = {
    "version": int,
    "agent": str,
    "componentClass": str,
    "checkName": str,
    "isFatal": bool,
    "isHealthy": bool,
    "message": str,
    "recommendedAction": str,
    "errorCode": list,
    "entitiesImpacted": list,
    "metadata": dict,
    "generatedTimestamp": str,
    "nodeName": str,
}
ACTIONS = {"NONE", "COMPONENT_RESET", "CONTACT_SUPPORT", "RUN_FIELDDIAG", "RESTART_VM", "RESTART_BM", "REPLACE_VM"}
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "check-outputs.md"


def events(*outcomes: HostOutcome) -> dict[str, dict[str, Any]]:
    """By check; each by the message's fields and types."""
    message = json.loads("".join(health_events(outcomes, at_s=1_800_000_000.9)))
    assert message.keys() == {"version", "events"}
    for event in message["events"]:
        assert {name: type(value) for name, value in event.items()} == FIELDS
        assert event["recommendedAction"] in ACTIONS
        assert all(isinstance(v, str) for v in event["metadata"].values())
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["generatedTimestamp"])
        assert not (event["isHealthy"] and event["isFatal"])
    return {event["checkName"]: event for event in message["events"]}


def on_host(check: CheckReport, virtualization: str | None = None) -> HostOutcome:
    facts = HostFacts(
        "10.0.0.4", "GPU04", OsFacts("debian", "12"), KernelFacts("6.1"), True, virtualization=virtualization
    )
    return HostOutcome("10.0.0.4", ExitCode.FAILED, check=CheckReport("10.0.0.4", check.results, facts))


@pytest.mark.parametrize(
    ("id", "healthy", "fatal", "message"),
    [
        ("drv.loaded", True, False, "passes"),
        ("drv.dkms-next", False, False, "the next boot has no module"),
        ("rt.effective-default", False, True, "containerd still runs with runc as its default"),
    ],
)
def test_each_verdict_is_an_event(id: str, healthy: bool, fatal: bool, message: str) -> None:
    event = events(on_host(CHECK))[id]
    assert (event["isHealthy"], event["isFatal"], event["message"]) == (healthy, fatal, message)
    assert event["errorCode"] == ([] if healthy else [id])
    assert (event["nodeName"], event["generatedTimestamp"]) == ("gpu04", "2027-01-15T08:00:00Z")


def test_what_is_not_known_is_no_event() -> None:
    assert events(on_host(CHECK)).keys() == CHECK.results.keys() - {"drv.mig"}
    assert events(lost_outcome("no route")) == {}


def test_what_nvsentinel_has_no_word_for_is_in_the_metadata() -> None:
    assert events(on_host(CHECK))["rt.effective-default"]["metadata"] == {
        "severity": "error",
        "gpunode_action": "configure",
        "evidence": 'defaultRuntimeName "runc"',
        "remedy": "gpunode setup",
    }


@pytest.mark.parametrize(
    ("virtualization", "action"), [(None, "RESTART_BM"), ("kvm", "RESTART_VM"), ("container", "RESTART_BM")]
)
def test_a_reboot_is_of_the_kind_of_machine_that_it_is(virtualization: str | None, action: str) -> None:
    finding = Finding("lost", "", Remedy(RepairAction.REBOOT, "reboot"))
    report = CheckReport("h", {"health.gpu-lost": CheckResult("health.gpu-lost", Severity.ERROR, finding)})
    assert events(on_host(report, virtualization))["health.gpu-lost"]["recommendedAction"] == action


def test_a_finding_names_what_it_is_about_and_its_cause() -> None:
    about = (*gpu("GPU-1"), *pci("0000:41:00.0"), *unit("docker.service"), place("/etc/x.toml", 31), place("/etc/y"))
    finding = Finding("lost", "", Remedy(RepairAction.RESET_GPU, "reset"), entities=about, cause="drv.loaded")
    report = CheckReport("h", {"health.gpu-lost": CheckResult("health.gpu-lost", Severity.ERROR, finding)})
    event = events(on_host(report, "kvm"))["health.gpu-lost"]
    assert [(e["entityType"], e["entityValue"]) for e in event["entitiesImpacted"]] == [
        ("GPU_UUID", "GPU-1"),
        ("PCI", "0000:41:00.0"),
        ("UNIT", "docker.service"),
        ("FILE", "/etc/x.toml:31"),
        ("FILE", "/etc/y"),
    ]
    assert (event["recommendedAction"], event["metadata"]["cause"]) == ("COMPONENT_RESET", "drv.loaded")


def test_a_gpu_is_reset_alone_only_where_it_is_named() -> None:
    assert recommended(RepairAction.RESET_GPU, virtual=True, gpu=False) == "RESTART_VM"
    assert recommended(RepairAction.REBOOT, virtual=False, gpu=True) == "RESTART_BM"


def test_the_page_has_every_action_as_the_code_has_it() -> None:
    rows = re.findall(r"^\| (`[a-z].*?) \| `([A-Z_]+)`.*? \| `([A-Z_]+)` \|$", PAGE.read_text(), re.MULTILINE)
    said = {name: tuple(kinds) for names, *kinds in rows for name in re.findall(r"`([a-z-]+)`", names)}
    assert said == {a.value: (recommended(a, virtual=False), recommended(a, virtual=True)) for a in RepairAction}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_host_writes_it_is_json_of_bounded_lines(text: str) -> None:
    for event in events(odd_outcome(text)).values():
        assert len(event["message"]) <= 1024
        assert not set("\n\x1b\x00\u202e") & set(f"{event['message']}{event['nodeName']}{event['metadata']}")


def test_secrets_are_masked() -> None:
    assert "hunter2" not in "".join(health_events([odd_outcome(SECRET)], at_s=0))
