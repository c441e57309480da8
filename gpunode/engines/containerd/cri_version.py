"""Which version of CRI containerd speaks."""

from __future__ import annotations

from gpunode.catalog.versions import first_with
from gpunode.model.facts import RuntimeFacts
from gpunode.model.versions import at_least


def speaks_cri_v1(engine: RuntimeFacts) -> bool | None:
    """None: its version is not known. What is older speaks v1alpha2 alone."""
    return None if engine.version is None else at_least(engine.version, first_with("containerd", "cri-v1"))
