"""What NVIDIA's GPU Operator has on a host: its containers bring it, and bring it back after whoever changes it."""

from __future__ import annotations

from gpunode.model.facts import HostFacts

IN_CHARGE = "the GPU Operator is in charge of"


def owned_by_operator(host: HostFacts) -> tuple[str, ...]:
    """Evidence of toolkit and engines that are the operator's; () where they are the host's own.

    Its driver is in a container, and only the operator's toolkit finds it there.
    """
    driver = ("/run/nvidia/driver is the root of its driver container",) if host.driver.container else ()
    toolkit = (f"{host.toolkit.operator} is its toolkit",) if host.toolkit.operator else ()
    return (*driver, *toolkit)
