"""Nodes that NVIDIA's GPU Operator manages; who else brings a driver is drv.install-method's."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.operator import owned_by_operator
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

# In the order in which its validator makes them (gpu-operator, validator/main.go).
READY = ("driver-ready", "toolkit-ready", "cuda-ready", "plugin-ready")
VALIDATOR = "nvidia-operator-validator"


@check(
    "k8s.operator-managed",
    Severity.WARNING,
    title="the GPU Operator has validated this node",
    reads="/run/nvidia/validations; /var/log/pods",
    remedy=Remedy(RepairAction.SUPPORT, "kubectl logs of nvidia-operator-validator on this node"),
    needs=(needs.kubelet, needs.joined, needs.device_plugins, needs.gpu),
)
def operator_managed(host: HostFacts, context: Context) -> CheckOutcome:
    """The GPU Operator's validator is on this node, and has not got through its checks."""
    plugins = host.kubernetes.device_plugins
    pods = (plugins.pods if plugins else None) or ()
    if plugins is None or plugins.pods is None:
        return NotApplicable("which pods are on this node is not known")
    if not any(VALIDATOR in one.pod for one in pods):
        owned = "without its validator" if owned_by_operator(host) else "it does not manage this node"
        return NotApplicable(f"no validator of the GPU Operator is on this node: {owned}")
    missing = [name for name in READY if name not in plugins.validations]
    if not missing:
        return None
    return Finding(
        f"the GPU Operator waits for {missing[0].removesuffix('-ready')}",
        evidence=f"/run/nvidia/validations has no {listing(missing)}",
        remedy=Remedy(
            RepairAction.SUPPORT, f"kubectl logs of {VALIDATOR} on this node (container {missing[0][:-6]}-validation)"
        ),
    )
