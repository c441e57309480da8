"""Checks as NVSentinel's HealthEvents, in the JSON form of its protobuf message, for a connector of the site to send.

The message is data-models/protobufs/health_event.proto of NVIDIA/NVSentinel. A check that passes is a healthy event,
which ends what an earlier one began; one without a verdict is none, since nothing is known to have ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from gpunode.model.entities import Entity, EntityKind
from gpunode.model.repair import ELSEWHERE
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome
from gpunode.remedy import RepairAction
from gpunode.render.check_values import host_name, line, own_words, standing
from gpunode.render.encode import listed, written

VERSION = 1  # of HealthEvents and of HealthEvent
MESSAGE = 1024  # characters; it becomes the message of a node's condition, which Kubernetes bounds
ENTITIES = {EntityKind.PCI: "PCI", EntityKind.GPU: "GPU_UUID", EntityKind.UNIT: "UNIT", EntityKind.FILE: "FILE"}
COMPONENTS = {"drv": "GPU", "health": "GPU", "mig": "GPU", "pci": "GPU", "dev": "GPU"}


def health_events(outcomes: Sequence[HostOutcome], *, at_s: float) -> Iterator[str]:
    """All hosts' events as one HealthEvents message, host by host. One without a report has none: nothing is known of
    it.
    """
    events = (event for outcome in outcomes for event in _of_host(outcome, _timestamp(at_s)))
    return listed({"version": VERSION}, "events", (written(event, "\n    ") for event in events), {})


def _timestamp(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


def _of_host(outcome: HostOutcome, timestamp: str) -> Iterator[dict[str, Any]]:
    report = outcome.check
    for result in report.results.values() if report else ():
        if (how := standing(result)) != "not-applicable" and report:
            yield {
                "version": VERSION,
                "agent": "gpunode",
                "componentClass": COMPONENTS.get(result.id.partition(".")[0], "SOFTWARE"),
                "checkName": result.id,
                "isFatal": how == "error",
                "isHealthy": how == "pass",
                **_about(result, report),
                "errorCode": [] if how == "pass" else [result.id],
                "generatedTimestamp": timestamp,
                "nodeName": _node(outcome, report),
            }


def _node(outcome: HostOutcome, report: CheckReport) -> str:
    """The hostname, which the kubelet takes in lower case; over SSH, a host may be named by its address."""
    return (line(report.host.hostname) if report.host else host_name(outcome)).lower()


def _about(result: CheckResult, report: CheckReport) -> dict[str, Any]:
    finding = result.outcome
    foreign = {"foreign": line(result.foreign)} if result.foreign else {}
    if not isinstance(finding, Finding):
        return {"message": "passes", "recommendedAction": "NONE", "metadata": foreign, "entitiesImpacted": []}
    # An accepted finding is no reason to act, and no sign of health that would end an earlier event.
    metadata = foreign | {
        "severity": result.found.value,
        "gpunode_action": finding.remedy.action.value,
        "evidence": line(finding.evidence),
        "remedy": line(finding.remedy.text),
    }
    metadata |= {label: line(text) for label, text in own_words(finding)}
    virtual = report.host is not None and report.host.virtualization not in (None, "container")
    if finding.cause:
        metadata["cause"] = finding.cause
    return {
        "message": line(finding.summary)[:MESSAGE],
        "recommendedAction": "NONE"
        if finding.accepted
        else recommended(finding.remedy.action, virtual=virtual, gpu=_gpu_is_named(finding)),
        "metadata": metadata,
        "entitiesImpacted": [{"entityType": ENTITIES[e.kind], "entityValue": _value(e)} for e in finding.entities],
    }


def _gpu_is_named(finding: Finding) -> bool:
    return any(entity.kind is EntityKind.GPU for entity in finding.entities)


def _value(entity: Entity) -> str:
    return line(entity.name if entity.line is None else f"{entity.name}:{entity.line}")


def recommended(action: RepairAction, *, virtual: bool, gpu: bool = False) -> str:
    """A name of its enum RecommendedAction. `gpu`: the finding names a GPU by its UUID, which can be reset alone."""
    # One GPU alone is reset only where it is named; else the machine is.
    unnamed = action is RepairAction.RESET_GPU and not gpu
    there = ELSEWHERE[RepairAction.REBOOT if unnamed else action]
    return there.nvsentinel_vm if virtual else there.nvsentinel
