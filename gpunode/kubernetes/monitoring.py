"""NVIDIA's DCGM exporter for Prometheus: in a cluster, as a service of systemd, and what shows its metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from gpunode import resources
from gpunode.catalog.dcgm_exporter import ExporterRelease, dashboard_counters, newest_exporter
from gpunode.kubernetes.dashboard import dashboard
from gpunode.kubernetes.documents import Object, documents
from gpunode.kubernetes.plugin_pods import NAMESPACE, Cluster, daemonset
from gpunode.kubernetes.readiness import LABEL as GPU_LABEL

NAME = "dcgm-exporter"
LABELS = {"app.kubernetes.io/name": NAME}  # without a version: a selector can never be changed
PORT = 9400
COUNTERS = "/etc/dcgm-exporter/default-counters.csv"
POD_RESOURCES = "/var/lib/kubelet/pod-resources"


def exporter_objects(release: ExporterRelease, cluster: Cluster) -> list[Object]:
    """DaemonSet and Service. On nodes with the label alone: on others the exporter ends over and over."""
    volume = {"name": "pod-resources", "hostPath": {"path": POD_RESOURCES, "type": "Directory"}}
    pod = {
        "automountServiceAccountToken": False,
        "nodeSelector": dict([GPU_LABEL]),
        "containers": [_container(release)],
        "volumes": [volume],
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {"selector": LABELS, "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}]},
    }
    return [daemonset(NAME, LABELS, pod, cluster), service]


def _container(release: ExporterRelease) -> Object:
    """As NVIDIA's chart has it; the metrics of profiling need root and CAP_SYS_ADMIN."""
    health = {"httpGet": {"path": "/health", "port": PORT}, "initialDelaySeconds": 45}
    return {
        "name": NAME,
        "image": release.image,
        "args": ["-f", COUNTERS],
        "env": [
            {"name": "DCGM_EXPORTER_LISTEN", "value": f":{PORT}"},
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "livenessProbe": health,
        "readinessProbe": health,
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "pod-resources", "mountPath": POD_RESOURCES, "readOnly": True}],
    }


def service_monitor() -> Object:
    """For Prometheus Operator. `instance` becomes the node's name, as it is where the exporter is no pod."""
    node = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "instance", "action": "replace"}
    endpoint = {"port": "metrics", "path": "/metrics", "interval": "30s", "relabelings": [node]}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "namespaceSelector": {"matchNames": [NAMESPACE]},
            "endpoints": [endpoint],
        },
    }


def exporter_unit(release: ExporterRelease) -> str:
    return resources.render("systemd/dcgm-exporter.service.j2", release=release, counters=COUNTERS, port=PORT)


def monitoring_notes(form: str, cluster: Cluster) -> Iterator[str]:
    """What is to be known of it."""
    if form == "manifest":
        yield f"its pods run on nodes with the label {'='.join(GPU_LABEL)} (gpunode k8s labels prints it)"
        if cluster.runtime_class is None:
            yield "nvidia is to be the engine's default runtime there; where it is not, add --runtime-class nvidia"
    elif form == "service-monitor":
        yield "a Prometheus may want a label of its own on it (serviceMonitorSelector): add it"
    elif form == "dashboard":
        yield "Grafana takes it under Dashboards, Import, or from the directory of a provider"


def monitoring(form: str, cluster: Cluster) -> str:
    """One of MONITORING_FORMS."""
    return MONITORING_FORMS[form](newest_exporter(), cluster)


MONITORING_FORMS: dict[str, Callable[[ExporterRelease, Cluster], str]] = {
    "manifest": lambda release, cluster: documents(
        exporter_objects(release, cluster), f"NVIDIA DCGM exporter {release.tag}"
    ),
    "service-monitor": lambda release, cluster: documents([service_monitor()]),
    "dashboard": lambda release, cluster: json.dumps(dashboard(dashboard_counters()), indent=2) + "\n",
    "unit": lambda release, cluster: exporter_unit(release),
}
