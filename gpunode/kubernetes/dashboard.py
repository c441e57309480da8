"""A dashboard of Grafana's for the metrics of DCGM exporter: a panel for each, under the headings of their groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gpunode.catalog.dcgm_exporter import Counter
from gpunode.kubernetes.documents import Object

SCHEMA = 39  # of Grafana 10.4, which later ones take and bring up to theirs
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
CHOSEN = '{instance=~"$instance",gpu=~"$gpu"}'
GPU_OF = "{{instance}} GPU {{gpu}} {{GPU_I_PROFILE}}"  # the last of MIG instances alone
WIDTH, HEIGHT, ACROSS = 8, 8, 3
_PRESENT = "DCGM_FI_DEV_GPU_TEMP"  # of every GPU, whatever it can do


def dashboard(counters: Sequence[Counter]) -> Object:
    """It asks for labels that exporter and Prometheus have always given: gpu and instance."""
    return {
        "uid": "gpunode-gpus",
        "title": "GPUs (gpunode)",
        "description": "Metrics of NVIDIA's DCGM exporter, by node and GPU.",
        "tags": ["gpu", "nvidia", "gpunode"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [_source(), _variable("instance", "Node", ""), _variable("gpu", "GPU", '{instance=~"$instance"}')]
        },
        "annotations": {"list": []},
        "panels": _panels(counters),
    }


def _source() -> Object:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _variable(name: str, label: str, of: str) -> Object:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values({_PRESENT}{of}, {name})",
        "refresh": 2,
        "sort": 7,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panels(counters: Sequence[Counter]) -> list[Object]:
    panels: list[Object] = []
    top = 0
    for group, members in groupby(counters, key=lambda one: one.group):
        panels.append(_heading(len(panels) + 1, group, top))
        for place, one in enumerate(each := tuple(members)):
            across, down = place % ACROSS, place // ACROSS
            where = {"x": across * WIDTH, "y": top + 1 + down * HEIGHT, "w": WIDTH, "h": HEIGHT}
            panels.append(_panel(len(panels) + 1, one, where))
        top += 1 + -(-len(each) // ACROSS) * HEIGHT
    return panels


def _heading(id: int, title: str, top: int) -> Object:
    where = {"x": 0, "y": top, "w": WIDTH * ACROSS, "h": 1}
    return {"id": id, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": where}


def _panel(id: int, one: Counter, where: Object) -> Object:
    scale = {"unit": one.unit, "min": 0} | ({"max": one.most} if one.most is not None else {})
    return {
        "id": id,
        "type": "timeseries",
        "title": one.title,
        "description": one.name,
        "datasource": SOURCE,
        "gridPos": where,
        "fieldConfig": {"defaults": scale, "overrides": []},
        "options": {
            "legend": {
                "calcs": ["lastNotNull", "max"],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": "A", "datasource": SOURCE, "expr": f"{one.name}{CHOSEN}", "legendFormat": GPU_OF, "range": True}
        ],
    }
