"""What keeps pods off a node until its GPUs can be used: a taint, the condition that ends it, and the order at boot.

The taint is there from the node's registration on; `gpunode check --npd` makes the condition, by Node Problem Detector;
the node readiness controller (sigs.k8s.io) takes the taint away when the condition says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, get_args

from gpunode import resources
from gpunode.catalog.runtimes import kubernetes_distributions
from gpunode.kubernetes.documents import Object, documents
from gpunode.model.kubernetes import CDI_REFRESH_UNIT, KUBELET_UNIT, boot_drop_in

ReadinessForm = Literal["rule", "npd", "kubelet", "systemd", "cdi"]
READINESS_FORMS: tuple[ReadinessForm, ...] = get_args(ReadinessForm)
CONDITION = "GPUNodeProblem"  # True is a problem, as of all conditions that Node Problem Detector makes
TAINT = "readiness.k8s.io/nvidia-gpu"  # the controller takes no key without this prefix
VALUE, EFFECT = "pending", "NoSchedule"
LABEL = ("nvidia.com/gpu.present", "true")
KUBELET = KUBELET_UNIT
GPUNODE = "/usr/local/bin/gpunode"
NPD_PATH = "/etc/node-problem-detector/gpunode.json"
PRINTED = "Printed by `gpunode k8s readiness`."


def kubelet_units() -> tuple[str, ...]:
    """What runs a kubelet: its own unit, or a distribution's."""
    return (KUBELET, *(unit for one in kubernetes_distributions() for unit in one.kubelet_units))


def readiness_rule(*, continuous: bool) -> Object:
    """A condition that nobody has set yet counts as Unknown, so the taint stays until a first check passed."""
    spec = {
        "nodeSelector": {"matchLabels": dict([LABEL])},
        "conditions": [{"type": CONDITION, "requiredStatus": "False"}],
        "taint": {"key": TAINT, "value": VALUE, "effect": EFFECT},
        "enforcementMode": "continuous" if continuous else "bootstrap-only",
    }
    metadata = {"name": "gpunode-nvidia-gpu"}
    return {
        "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
        "kind": "NodeReadinessRule",
        "metadata": metadata,
        "spec": spec,
    }


def npd_plugin(expect_gpus: int | None) -> Mapping[str, object]:
    """Node Problem Detector's configuration of a custom plugin.

    The checks of Kubernetes are left out: a device plugin that waits for the taint to go would keep the taint. And
    without skip_initial_status the condition is False before anything was checked, which would end the taint.
    """
    expected = ("--expect-gpus", str(expect_gpus)) if expect_gpus is not None else ()
    return {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": "1m",
            "timeout": "55s",
            "max_output_length": 80,
            "concurrency": 1,
            "enable_message_change_based_condition_update": True,
            "skip_initial_status": True,
        },
        "source": "gpunode",
        "metricsReporting": True,
        "conditions": [
            {"type": CONDITION, "reason": "GPUNodeChecksPass", "message": "gpunode check finds no error"},
        ],
        "rules": [
            {
                "type": "permanent",
                "condition": CONDITION,
                "reason": "GPUNodeCheckFails",
                "path": GPUNODE,
                "args": ["check", "--npd", "--skip", "k8s.*", *expected],
                "timeout": "55s",
            }
        ],
    }


def registration(unit: str) -> tuple[str, str]:
    """(where it goes, the text): label and taint, with which the node registers. They act then, and never again."""
    label, taint = "=".join(LABEL), f"{TAINT}={VALUE}:{EFFECT}"
    name = unit.partition(".")[0]
    if name.startswith(("k3s", "rke2")):
        # With a plus they are added to what other files of that directory say.
        directory = "k3s" if name.startswith("k3s") else "rke2"
        settings = {"node-label+": [label], "node-taint+": [taint]}
        return f"/etc/rancher/{directory}/config.yaml.d/50-gpunode.yaml", documents([settings])
    if name.startswith("k0s"):
        return "the command line of k0s worker (k0s install worker ...)", f"--labels={label} --taints={taint}\n"
    where = (
        "/var/snap/microk8s/current/args/kubelet"
        if "microk8s" in unit
        else "KUBELET_EXTRA_ARGS of /etc/default/kubelet"
    )
    return where, f"--node-labels={label} --register-with-taints={taint}\n"


def readiness_part(form: ReadinessForm, unit: str, *, continuous: bool, expect_gpus: int | None) -> tuple[str, str]:
    """(where it goes, the text)."""
    if form == "rule":
        return "kubectl apply -f -", documents([readiness_rule(continuous=continuous)])
    if form == "npd":
        return NPD_PATH, json.dumps(npd_plugin(expect_gpus), indent=2) + "\n"
    if form == "kubelet":
        return registration(unit)
    if form == "systemd":
        text = resources.render("systemd/kubelet-after-gpus.conf.j2", by=PRINTED)
        return boot_drop_in(unit), text
    return boot_drop_in(CDI_REFRESH_UNIT), resources.render("systemd/cdi-after-mig.conf.j2")
