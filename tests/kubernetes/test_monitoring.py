"""Monitoring: what servers, Prometheus' operator, systemd and Grafana take, and metrics that the exporter has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gpunode.catalog.dcgm_exporter import dashboard_counters, newest_exporter
from gpunode.cli.app import main
from gpunode.errors import ExitCode
from gpunode.kubernetes.monitoring import LABELS, MONITORING_FORMS, monitoring
from gpunode.kubernetes.plugin_pods import Cluster
from tests.kubernetes.plugins import documents_of
from tests.kubernetes.schemas import RELEASES as SERVERS
from tests.kubernetes.schemas import faults

HERE = Cluster()
# etc/default-counters.csv of dcgm-exporter 4.5.3-4.8.2: the lines that are no comments, without the label.
DEFAULT_COUNTERS = [
    "DEV_SM_CLOCK",
    "DEV_MEM_CLOCK",
    "DEV_MEMORY_TEMP",
    "DEV_GPU_TEMP",
    "DEV_POWER_USAGE",
    "DEV_TOTAL_ENERGY_CONSUMPTION",
    "DEV_PCIE_REPLAY_COUNTER",
    "DEV_GPU_UTIL",
    "DEV_MEM_COPY_UTIL",
    "DEV_ENC_UTIL",
    "DEV_DEC_UTIL",
    "DEV_XID_ERRORS",
    "DEV_FB_FREE",
    "DEV_FB_USED",
    "DEV_FB_RESERVED",
    "DEV_NVLINK_BANDWIDTH_TOTAL",
    "DEV_VGPU_LICENSE_STATUS",
    "DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DEV_CORRECTABLE_REMAPPED_ROWS",
    "DEV_ROW_REMAP_FAILURE",
    "PROF_GR_ENGINE_ACTIVE",
    "PROF_PIPE_TENSOR_ACTIVE",
    "PROF_DRAM_ACTIVE",
    "PROF_PCIE_TX_BYTES",
    "PROF_PCIE_RX_BYTES",
]


def objects(runtime_class: str | None = None) -> dict[str, Any]:
    return {one["kind"]: one for one in documents_of(monitoring("manifest", Cluster(runtime_class=runtime_class)))}


def board() -> Any:
    return json.loads(monitoring("dashboard", HERE))


def panels() -> list[Any]:
    return [one for one in board()["panels"] if one["type"] != "row"]


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_takes_the_exporter(server: str) -> None:
    for kind, one in objects("nvidia").items():
        assert faults(one, server) == [], kind


def test_the_service_finds_the_pods_and_prometheus_the_service() -> None:
    found = objects()
    pod, service = found["DaemonSet"]["spec"]["template"], found["Service"]
    (container,) = pod["spec"]["containers"]
    (monitor,) = documents_of(monitoring("service-monitor", HERE))
    assert pod["metadata"]["labels"] == service["spec"]["selector"] == LABELS
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == [service["metadata"]["namespace"]]
    (endpoint,), (port,) = monitor["spec"]["endpoints"], service["spec"]["ports"]
    assert endpoint["port"] == port["name"] == "metrics"
    assert [one["name"] for one in container["ports"]] == [port["targetPort"]]


def test_a_service_monitor_has_the_fields_of_its_definition() -> None:
    """prometheus-operator, monitoring.coreos.com_servicemonitors.yaml: an unknown field is dropped without a word."""
    (monitor,) = documents_of(monitoring("service-monitor", HERE))
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert set(endpoint) == {"port", "path", "interval", "relabelings"}
    assert re.fullmatch(r"[0-9]+s", endpoint["interval"])
    assert [set(one) for one in endpoint["relabelings"]] == [{"sourceLabels", "targetLabel", "action"}]


def test_the_image_is_pinned() -> None:
    (container,) = objects()["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless"
    assert (newest_exporter().dcgm, newest_exporter().exporter) == ("4.5.3", "4.8.2")


def test_pods_run_where_gpus_are_and_tolerate_the_gpu_taint() -> None:
    pod = objects("nvidia")["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pod["runtimeClassName"] == "nvidia"
    assert "nvidia.com/gpu" in [one["key"] for one in pod["tolerations"]]
    assert "runtimeClassName" not in objects()["DaemonSet"]["spec"]["template"]["spec"]


def test_every_metric_of_the_dashboard_is_one_that_the_exporter_has_without_a_setting() -> None:
    named = set(re.findall(r"DCGM_[A-Z0-9_]+", json.dumps(board())))
    assert named == {one.name for one in dashboard_counters()}
    assert named <= {f"DCGM_FI_{name}" for name in DEFAULT_COUNTERS}


def test_panels_stand_side_by_side_and_have_an_id_each() -> None:
    taken: set[tuple[int, int]] = set()
    for one in board()["panels"]:
        at = one["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [one["id"] for one in board()["panels"]]
    assert len(set(ids)) == len(ids)


def test_a_dashboard_asks_for_the_variables_that_it_has() -> None:
    variables = [one["name"] for one in board()["templating"]["list"]]
    asked = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(board())))
    assert asked == set(variables) == {"datasource", "instance", "gpu"}


# jsonschema/dashboard.jsonschema.json of grafana-foundation-sdk (2026-06-16) refuses any other key of these.
KEYS = {
    "dashboard": "uid title description tags schemaVersion editable graphTooltip refresh time templating annotations "
    "panels",
    "panel": "id type title description datasource gridPos fieldConfig options targets collapsed panels",
    "variable": "name label type datasource query refresh sort multi includeAll allValue current",
}


def test_a_dashboard_has_keys_that_grafanas_schema_knows() -> None:
    whole = board()
    assert {"schemaVersion", "templating", "annotations"} <= set(whole) <= set(KEYS["dashboard"].split())
    assert all(set(one) <= set(KEYS["panel"].split()) for one in whole["panels"])
    assert all(set(one) <= set(KEYS["variable"].split()) for one in whole["templating"]["list"])
    assert all(set(one["gridPos"]) == {"x", "y", "w", "h"} for one in whole["panels"])
    assert all({"defaults", "overrides"} == set(one["fieldConfig"]) for one in panels())


@pytest.mark.parametrize("form", MONITORING_FORMS)
def test_each_form_goes_to_stdout_and_its_notes_to_stderr(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["k8s", "monitoring", "--form", form]) == ExitCode.DONE
    out, err = capsys.readouterr()
    assert out == monitoring(form, HERE)
    assert all(line.startswith("gpunode: ") for line in err.splitlines())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--form", "dashbord"], "did you mean dashboard?"),
        (["--form", "x\x1b[2J"], "is not a choice"),
        (["--runtime-class", "A B"], "is no name of an object"),
        (["--runtime-class", "nvidia", "--form", "unit"], "--runtime-class is for --form manifest"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["k8s", "monitoring", *words]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert says in " ".join(err.split())
