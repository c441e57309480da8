"""What is not known of the node, so that nobody takes it for fine."""

from __future__ import annotations

from collections.abc import Iterator

from gpunode.advice import listing
from gpunode.catalog.feature_gates import first_refusal, incomplete_releases, listed_to
from gpunode.checks.upgrade.values import Effect, Upgrade
from gpunode.model.versions import written


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


def gates_unknown(upgrade: Upgrade) -> Iterator[Effect]:
    """Gates that are set, and that a release of which not all is listed may not know any more."""
    partly = [one for one in incomplete_releases() if upgrade.comes(one)]
    if upgrade.to <= listed_to() and not partly:
        return
    alive = (one.name for one in upgrade.told.gates if not first_refusal(one.name, upgrade.to, on=one.on))
    set_here = dict.fromkeys(alive)
    if not set_here:
        return
    since = min(partly, default=upgrade.to)
    yield Effect(
        "unknown",
        "feature-gate",
        f"whether {upgrade.later} knows {listing(set_here)}",
        f"which feature gates go is listed whole up to {written((since[0], since[1] - 1))}",
        since,
    )
