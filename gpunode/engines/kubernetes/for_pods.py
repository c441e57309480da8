"""What a spec wants of one engine, by who gives out the node's GPUs: pods' engines and those of people differ."""

from __future__ import annotations

from dataclasses import replace

from gpunode.model.facts import RuntimeFacts
from gpunode.model.spec import RuntimeSpec, Spec

NOT_CRI = ("docker", "podman")  # docker is a kubelet's engine before 1.24 alone


def may_run_pods(engine: RuntimeFacts) -> bool:
    """Of a kubelet since 1.24, which speaks CRI and nothing else."""
    return engine.name not in NOT_CRI and not engine.user


def by_dra(spec: Spec, engine: RuntimeFacts) -> bool:
    """This engine's pods get their GPUs from NVIDIA's DRA driver."""
    return spec.kubernetes.mode == "dra" and may_run_pods(engine)


def runtime_wanted(spec: Spec, engine: RuntimeFacts) -> RuntimeSpec:
    """How this engine shall run.

    The DRA driver names CDI devices that it describes itself, and no handler: the engine has to have CDI on, and its
    default runtime is left as it is (kubernetes-sigs/dra-driver-nvidia-gpu, Prerequisites).
    """
    return replace(spec.runtime, default=False, cdi=True) if by_dra(spec, engine) else spec.runtime
