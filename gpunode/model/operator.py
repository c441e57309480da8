"""What NVIDIA's GPU Operator has on a host: its containers bring it, and bring it back after whoever changes it."""

from __future__ import annotations

from gpunode.model.facts import HostFacts, KubernetesFacts

IN_CHARGE = "the GPU Operator is in charge of"
_BRING_DRIVER = ("nvidia-driver-ctr", "k8s-driver-manager")  # the second unloads what is there before the first begins

_VFIO = "nvidia-vfio-manager"  # prepares the host likewise, and brings none: its GPUs are for virtual machines


def driver_pods(kubernetes: KubernetesFacts) -> tuple[str, ...]:
    """The operator's pods that bring this node its driver, also while they start or fail: "NAMESPACE_POD".

    Where the host has a driver of its own the operator starts none (driver.enabled=false, or the node's label
    nvidia.com/gpu.deploy.driver=pre-installed).
    """
    plugins = kubernetes.device_plugins
    pods = (plugins.pods if plugins else None) or ()
    found = (one.pod for one in pods if one.container in _BRING_DRIVER and _VFIO not in one.pod)
    return tuple(dict.fromkeys(found))


def owned_by_operator(host: HostFacts) -> tuple[str, ...]:
    """Evidence of toolkit and engines that are the operator's; () where they are the host's own.

    Its driver is in a container, and only the operator's toolkit finds it there.
    """
    pods = tuple(f"{pod} brings its driver" for pod in driver_pods(host.kubernetes))
    driver = pods or ("/run/nvidia/driver is the root of its driver container",) if host.driver.container else ()
    toolkit = (f"{host.toolkit.operator} is its toolkit",) if host.toolkit.operator else ()
    return (*driver, *toolkit)
