"""Releases of Kubernetes as people type them."""

from __future__ import annotations

import re

from gpunode.errors import UsageError
from gpunode.model.versions import Release


def kubernetes_release(text: str, option: str = "--kubernetes") -> Release:
    """(1, 34) for "1.34", "v1.34.2" and "1.34.2+k3s1". Raises UsageError."""
    found = re.fullmatch(r"v?1\.([0-9]{1,3})(\.[0-9]{1,9})?([-+][\w.+-]{1,60})?", text.strip(), re.ASCII)
    if found is None:
        raise UsageError(
            f"{option} {text[:60]!r} is not a release of Kubernetes",
            evidence="the forms are 1.34 and v1.34.2",
            remedy="kubectl version shows the server's",
        )
    return 1, int(found[1])
