"""The official client, which is installed on request: loaded here alone, and only for who names a kubeconfig."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from gpunode.advice import typed
from gpunode.errors import UnsupportedHost

REQUIREMENT = "kubernetes>=37"  # as the extra `kubernetes` of pyproject.toml has it


def official_client() -> Any:
    """The module kubernetes.client, whose own loader of kubeconfigs is not used. Raises UnsupportedHost."""
    try:
        return import_module("kubernetes.client")
    except ImportError as error:
        raise UnsupportedHost(
            "the official Kubernetes client is not installed",
            evidence=f"--kubeconfig asks the API server through it, and {sys.executable} does not find it ({error})",
            remedy=typed(sys.executable, "-m", "pip", "install", REQUIREMENT)
            + " installs it; gpunode[kubernetes] brings it along",
        ) from error
