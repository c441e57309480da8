"""Pods of this node, as far as the kubelet's own files tell: one whose image does not come, and some that are gone."""

from __future__ import annotations

from gpunode.advice import listing
from gpunode.checks import needs
from gpunode.checks.k8s.plugin import PLUGIN
from gpunode.checks.k8s.start import restart
from gpunode.checks.registry import Context, check
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import DevicePlugins
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction

CHECKPOINT = "kubelet_internal_checkpoint"
IMAGE = "/k8s-device-plugin"


@check(
    "k8s.image-pull",
    Severity.WARNING,
    title="the device plugin's image is on this node",
    reads="/var/log/pods, processes, and the images in the node's object; no registry is asked",
    remedy=Remedy(RepairAction.CONFIGURE, "load the image on the node (ctr -n k8s.io images import), or name a mirror"),
    needs=PLUGIN,
    mode="device-plugin",
)
def image_pull(host: HostFacts, context: Context) -> CheckOutcome:
    """The device plugin's pod waits and never gets a container: most often its image cannot be pulled."""
    plugins, node = host.kubernetes.device_plugins or DevicePlugins(""), host.kubernetes.node
    if plugins.processes or any(pod.restarts is not None for pod in plugins.plugin_pods):
        return None
    present = next((image for image in (node.images if node else None) or () if IMAGE in image), None)
    late = [pod for pod, is_late in plugins.waits.items() if is_late]
    if late and present:
        return NotApplicable(f"{listing(late)} has no container though {present} is on the node: its events show why")
    if present:
        return None
    if not late:
        return NotApplicable(_not_told(plugins))
    return Finding(
        "the device plugin's pod gets no container: its image most likely cannot be pulled",
        evidence=f"/var/log/pods: {listing(late)} has had a sandbox and no container for more than ten minutes",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "kubectl describe pod shows its events; load the image on the node (ctr -n k8s.io images import, docker "
            "load), or give the chart a registry that the node reaches (--set image.repository=...)",
        ),
    )


def _not_told(plugins: DevicePlugins) -> str:
    if plugins.waits:
        return f"{listing(plugins.waits)} has just come: its image may still be on its way"
    if plugins.pods is None:
        return "which pods are on this node is not known: /var/log/pods was not read"
    return "nothing on this node tells whether it has, or can get, the device plugin's image"


@check(
    "k8s.allocated-ghosts",
    Severity.WARNING,
    title="the kubelet keeps no devices for pods that are gone",
    reads=f"UIDs of pods in {CHECKPOINT}, against the directories of the kubelet's pods",
    remedy=Remedy(RepairAction.RESTART_SERVICE, "systemctl restart kubelet"),
    needs=(needs.kubelet, needs.joined, needs.running_kubelet, needs.device_plugins, needs.gpu),
    mode="device-plugin",
)
def allocated_ghosts(host: HostFacts, context: Context) -> CheckOutcome:
    """The kubelet still counts devices as given to pods that are gone: nobody else gets them.

    It looks for such pods when it next gives a device to one, and not before: until then an entry of a pod that has
    ended says nothing.
    """
    plugins = host.kubernetes.device_plugins or DevicePlugins("")
    if plugins.allocated is None:
        return NotApplicable(f"the pods in {plugins.directory}/{CHECKPOINT} were not read")
    if not plugins.ghosts:
        return None
    count = f"{len(plugins.ghosts)} of the {plugins.allocated} pods in {CHECKPOINT}"
    if not plugins.kept:
        return NotApplicable(f"{count} are gone; the kubelet takes them out when it next gives a device to a pod")
    return Finding(
        "the kubelet keeps devices for pods that are gone",
        evidence=f"{count} have no directory, and it kept them for the newest pod: {listing(plugins.ghosts)}",
        remedy=Remedy(RepairAction.RESTART_SERVICE, f"{restart(host)}, which counts anew; pods keep running"),
    )
