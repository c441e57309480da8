"""What is not known of the node, so that nobody takes it for fine."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.checks.upgrade.values import Effect, Upgrade


def version_unknown(upgrade: Upgrade) -> Iterator[Effect]:
    """What an older kubelet does not have yet, and what this one does already, is not told apart."""
    if upgrade.now is None:
        yield Effect(
            "unknown",
            "version",
            "which release the kubelet is today",
            "kubelet --version did not answer, and no package or distribution says it",
        )


def told_unknown(upgrade: Upgrade) -> Iterator[Effect]:
    """A file that was not read may hold what stops the kubelet."""
    for why in upgrade.told.unknown:
        yield Effect("unknown", "settings", f"not all that {upgrade.name} is told", why)
