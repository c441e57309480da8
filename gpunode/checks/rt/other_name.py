"""NVIDIA's runtime as an engine's default, under another name than gpunode gives it, as in AKS' images."""

from __future__ import annotations

from gpunode.advice import named
from gpunode.model.facts import RuntimeFacts


def runs_nvidias(engine: RuntimeFacts) -> str:
    """For the evidence: containers that name no runtime have their GPUs."""
    return f"its default {engine.effective_default} is NVIDIA's too · " if engine.nvidia_by_default else ""


def keeps(engine: RuntimeFacts) -> str:
    """For the remedy."""
    name = named(engine.effective_default or "")
    return (
        f"; the line `handler: {name}` in a file for --spec keeps the name that it has"
        if engine.nvidia_by_default
        else ""
    )
