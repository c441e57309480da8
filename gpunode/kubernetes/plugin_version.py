"""Which release of the device plugin is meant."""

from __future__ import annotations

from collections.abc import Sequence

from gpunode.advice import meant
from gpunode.catalog.plugin_releases import PluginRelease
from gpunode.errors import UsageError


def chosen(version: str | None, known: Sequence[PluginRelease]) -> PluginRelease:
    """v0.20.0, 0.20.0, or 0.19 for its newest; None is the newest of all. Raises UsageError."""
    if version is None:
        return known[-1]
    tag = f"v{version.removeprefix('v')}"
    found = [one for one in known if one.tag == tag or one.tag.startswith(f"{tag}.")]
    if not found or tag.count(".") == 0:
        tags = [one.tag for one in known]
        raise UsageError(
            f"--plugin-version {version!r:.60} is not known",
            evidence=f"{meant(version[:60], tags)}the releases are {', '.join(tags)}",
            remedy="choose one of them with --plugin-version",
        )
    return found[-1]
