"""Readiness: taint, condition and order at boot agree with each other, and nothing waits in a circle."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpunode.catalog.node_labels import kubelet_may_set
from gpunode.cli.app import main
from gpunode.errors import ExitCode
from gpunode.kubernetes.documents import documents
from gpunode.kubernetes.readiness import (
    CONDITION,
    READINESS_FORMS,
    ReadinessForm,
    kubelet_units,
    npd_plugin,
    readiness_part,
    readiness_rule,
    registration,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "node-problem-detector" / "gpunode.json"


def rule(*, continuous: bool = False) -> Any:
    return yaml.safe_load(documents([readiness_rule(continuous=continuous)]))


def part(form: ReadinessForm, unit: str = "kubelet.service", **more: Any) -> str:
    return readiness_part(form, unit, **{"continuous": False, "expect_gpus": None, **more})[1]


@pytest.mark.parametrize("continuous", [False, True])
def test_the_rule_is_one_that_the_controllers_definition_takes(continuous: bool) -> None:
    """Node readiness controller 0.5.0, api/v1alpha1: its validations, one by one."""
    one = rule(continuous=continuous)
    assert (one["apiVersion"], one["kind"]) == ("readiness.node.x-k8s.io/v1alpha1", "NodeReadinessRule")
    spec = one["spec"]
    assert set(spec) == {"nodeSelector", "conditions", "taint", "enforcementMode"}  # the required ones
    assert spec["enforcementMode"] == ("continuous" if continuous else "bootstrap-only")
    assert spec["taint"]["key"].startswith("readiness.k8s.io/")
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", spec["taint"]["key"].split("/")[1])
    assert spec["taint"]["effect"] in ("NoSchedule", "PreferNoSchedule", "NoExecute")
    for condition in spec["conditions"]:
        assert set(condition) == {"type", "requiredStatus"}  # a defaultStatus would end the taint before any check
        assert condition["requiredStatus"] in ("True", "False", "Unknown")


def test_the_condition_is_the_one_that_the_detector_makes() -> None:
    plugin: Any = npd_plugin(8)
    (condition,) = plugin["conditions"]
    (one,) = plugin["rules"]
    assert condition["type"] == one["condition"] == CONDITION == rule()["spec"]["conditions"][0]["type"]
    assert one["type"] == "permanent"  # a condition is made of these alone
    assert one["args"][-2:] == ["--expect-gpus", "8"]
    example = json.loads(EXAMPLE.read_text())
    assert set(plugin) == set(example)
    assert example["conditions"] == plugin["conditions"]


def test_no_condition_before_the_first_check() -> None:
    plugin: Any = npd_plugin(None)
    assert plugin["pluginConfig"]["skip_initial_status"] is True


def test_the_checks_of_kubernetes_do_not_wait_for_what_the_taint_keeps_off() -> None:
    plugin: Any = npd_plugin(None)
    assert plugin["rules"][0]["args"] == ["check", "--npd", "--skip", "k8s.*"]


def test_the_detectors_command_line_is_one_that_gpunode_takes(capsys: pytest.CaptureFixture[str]) -> None:
    plugin: Any = npd_plugin(2)
    host = EXAMPLE.parents[1] / "hosts" / "ubuntu2404-node-l40s-ready"
    assert main([*plugin["rules"][0]["args"], "--recorded", str(host)]) == 0
    assert len(capsys.readouterr().out.encode()) <= 81


@pytest.mark.parametrize("unit", kubelet_units())
def test_a_node_registers_with_the_rules_taint_and_label(unit: str) -> None:
    text = registration(unit)[1]
    spec = rule()["spec"]
    taint = "{key}={value}:{effect}".format(**spec["taint"])
    ((name, value),) = spec["nodeSelector"]["matchLabels"].items()
    assert taint in text
    assert f"{name}={value}" in text
    assert kubelet_may_set(name, None)
    if unit.startswith(("k3s", "rke2")):
        assert yaml.safe_load(text) == {"node-label+": [f"{name}={value}"], "node-taint+": [taint]}


def options(text: str, section: str) -> dict[str, list[str]]:
    """Every value of each key: a unit may have one twice."""
    found: dict[str, list[str]] = {}
    here = ""
    for line in text.splitlines():
        if line.startswith("["):
            here = line.strip("[]")
        elif line and not line.startswith("#") and here == section:
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_the_kubelet_comes_after_all_that_it_wants() -> None:
    unit = options(part("systemd"), "Unit")
    after, wants = " ".join(unit["After"]).split(), " ".join(unit["Wants"]).split()
    assert set(wants) < set(after)
    assert {"gpunode-mig.service", "nvidia-fabricmanager.service", "systemd-modules-load.service"} < set(after)
    assert "Requires" not in unit
    assert "nvidia-cdi-refresh.service" not in after  # that of toolkit 1.19.0 comes after the kubelet
    service = options(part("systemd"), "Service")
    assert all(line.startswith("-/") for line in service["ExecStartPre"])  # a broken GPU does not stop a kubelet


@pytest.mark.parametrize("form", READINESS_FORMS)
def test_each_part_stands_in_the_whole(form: ReadinessForm, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["k8s", "readiness", "--form", form]) == 0
    one, err = capsys.readouterr()
    assert one == part(form)
    assert "it goes to" in err
    assert main(["k8s", "readiness"]) == 0
    assert one in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--form", "roole"], "did you mean rule?"),
        (["--unit", "kublet.service"], "did you mean kubelet.service?"),
        (["--unit", "x\x1b[2J"], "is not a choice"),
        (["--expect-gpus", "0"], "is not a whole number"),
        (["--form", "rule", "--unit", "k3s.service"], "--unit is not for --form rule"),
        (["--form", "cdi", "--continuous"], "--continuous is not for --form cdi"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["k8s", "readiness", *words]) == ExitCode.USAGE
    assert says in " ".join(capsys.readouterr().err.split())
