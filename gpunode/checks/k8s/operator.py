"""Nodes that NVIDIA's GPU Operator manages, and its CVEs; who else brings a driver is drv.install-method's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import DevicePlugins
from gpunode.model.operator import driver_pods, owned_by_operator
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.versions import three_numbers
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction

# In the order in which its validator makes them (gpu-operator, validator/main.go).
READY = ("driver-ready", "toolkit-ready", "cuda-ready", "plugin-ready")
VALIDATOR = "nvidia-operator-validator"
# gpu-operator-validator has the operator's own version, and is on every node of it.
_TAGGED = regex(
    r"(?:.*/)?(?P<name>gpu-operator|gpu-operator-validator|container-toolkit):(?P<version>v?[0-9.]+)(?:-(?P<of>[\w.-]+))?",
    re.ASCII,
)
UPGRADE = "upgrade the GPU Operator's chart to its newest release"


@check(
    "k8s.operator-managed",
    Severity.WARNING,
    title="the GPU Operator has validated this node",
    reads="/run/nvidia/validations; /var/log/pods; /sys/module/nvidia",
    remedy=Remedy(RepairAction.SUPPORT, "kubectl logs of nvidia-operator-validator on this node"),
    needs=(needs.kubelet, needs.joined, needs.device_plugins, needs.gpu),
)
def operator_managed(host: HostFacts, context: Context) -> CheckOutcome:
    """The GPU Operator's validator is on this node, and has not got through its checks."""
    plugins = host.kubernetes.device_plugins
    if plugins is None or plugins.pods is None:
        return NotApplicable("which pods are on this node is not known")
    if pods := not_running(host):
        return Finding(
            "the GPU Operator's driver does not run",
            evidence=f"{listing(pods)} is to bring it; /sys/module/nvidia is absent",
            remedy=Remedy(RepairAction.SUPPORT, "wait while it builds; kubectl logs of that pod says why it fails"),
            severity=Severity.ERROR,
        )
    if not _has_validator(plugins):
        owned = "without its validator" if owned_by_operator(host) else "it does not manage this node"
        return NotApplicable(f"no validator of the GPU Operator is on this node: {owned}")
    missing = awaited(plugins)
    if not missing:
        return None
    return Finding(
        f"the GPU Operator waits for {missing[0].removesuffix('-ready')}",
        evidence=f"/run/nvidia/validations has no {listing(missing)}",
        remedy=Remedy(
            RepairAction.SUPPORT, f"kubectl logs of {VALIDATOR} on this node (container {missing[0][:-6]}-validation)"
        ),
    )


def not_running(host: HostFacts) -> tuple[str, ...]:
    """The operator's pods that bring a driver which is not loaded."""
    return driver_pods(host.kubernetes) if host.driver.loaded is None else ()


def _has_validator(plugins: DevicePlugins) -> bool:
    return any(VALIDATOR in one.pod for one in plugins.pods or ())


def awaited(plugins: DevicePlugins) -> list[str]:
    """What the validator has not found yet, in its order; [] where there is none, too."""
    return [name for name in READY if name not in plugins.validations] if _has_validator(plugins) else []


@check(
    "sec.operator-cve",
    Severity.WARNING,
    title="the GPU Operator's images have no known CVE that a newer release has fixed",
    reads="kubectl get node with the kubelet's own kubeconfig: its images; catalog/operator_cves.yaml and toolkit.yaml",
    remedy=Remedy(RepairAction.UPGRADE, UPGRADE),
    needs=(needs.kubelet, needs.joined, needs.gpu),
)
def operator_cve(host: HostFacts, context: Context) -> CheckOutcome:
    """The GPU Operator on this node, or its toolkit, has a known CVE: a container may gain rights on it."""
    from gpunode.catalog.operator_cves import operator_cves_of

    images = host.kubernetes.node.images if host.kubernetes.node else None
    here = _has_operator(host, images or ())
    if here is None:
        return NotApplicable("whether the GPU Operator manages this node is not known")
    if not here:
        return NotApplicable("the GPU Operator does not manage this node")
    if images is None:
        return NotApplicable(needs.node(host) or "which images are on this node was not asked")
    # Images of earlier releases stay on a node for a while: the newest of each is the one in use.
    operator = max(_versions(images, "gpu-operator"), default=None)
    toolkit = max(_versions(images, "container-toolkit"), default=None)
    if operator is None and toolkit is None:
        return NotApplicable("the node's object names no release of the GPU Operator, nor of its toolkit")
    if operator is not None and (known := operator_cves_of(operator[0])):
        return _has_cves(
            f"GPU Operator {_dotted(operator)}", operator[1], (row.cve for row in known), known[-1].version
        )
    floor = context.catalog.toolkit
    if toolkit is not None and toolkit[0] < (three_numbers(floor.floor) or ()):
        return _has_cves(f"the Operator's toolkit {_dotted(toolkit)}", toolkit[1], (floor.floor_cve,), floor.floor)
    return None


def _has_operator(host: HostFacts, images: Iterable[str]) -> bool | None:
    """Whether the GPU Operator manages this node; None: not known."""
    plugins = host.kubernetes.device_plugins
    pods = plugins.pods if plugins else None
    if owned_by_operator(host) or any(VALIDATOR in one.pod for one in pods or ()):
        return True
    if pods is not None:
        return False
    return True if any(_versions(images, "gpu-operator")) else None


_Version = tuple[tuple[int, ...], str]  # (25, 3, 1), and the image that says so


def _versions(images: Iterable[str], name: str) -> Iterator[_Version]:
    """The releases of images of this name; tags such as v25.3.1-ubi9 name one too, and v25.3.1-rc.1 does not."""
    for image in images:
        found = _TAGGED.fullmatch(image.partition("@")[0])
        if (
            found is None
            or not found["name"].startswith(name)
            or (found["of"] or "").startswith(("rc", "alpha", "beta"))
        ):
            continue
        version = three_numbers(found["version"])
        if version is not None:
            yield version, image


def _dotted(version: _Version) -> str:
    return ".".join(map(str, version[0]))


def _has_cves(what: str, image: str, cves: Iterable[str], fixed: str) -> Finding:
    of = list(cves)
    return Finding(
        f"{what} has {listing(of)}, fixed in {fixed}",
        evidence=f"the node's object has the image {image}",
        remedy=Remedy(RepairAction.UPGRADE, UPGRADE),
    )
