"""Hosts whose /usr an image replaces as a whole: what the image has is kept, what it lacks is not installed."""

from __future__ import annotations

from gpunode.errors import UnsupportedHost
from gpunode.model.facts import HostFacts
from gpunode.model.plan import Kept
from gpunode.model.spec import DriverRequest, Spec
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.values import dataclass


@dataclass(frozen=True)
class _Way:
    evidence: str
    remedy: str  # how programs come onto such a host


WAYS = {
    "ostree": _Way(
        "/run/ostree-booted is there",
        "build them into the image (a Containerfile made from it), or `rpm-ostree install` and a reboot where the "
        "image is Fedora's or your own; on OpenShift the GPU Operator brings driver and toolkit itself",
    ),
    "transactional-update": _Way(
        "/usr is mounted read-only, and transactional-update is there",
        "install them in a new snapshot (`transactional-update pkg install`) and reboot",
    ),
    "read-only": _Way(
        "/usr is mounted read-only",
        "build them into the image that this host boots, or make /usr writable (mount -o remount,rw) where it is the "
        "host's own",
    ),
}


def image_outcomes(host: HostFacts, spec: Spec, *, driver: bool, toolkit: bool, removing: bool) -> tuple[Kept, ...]:
    """What stays of the image. Raises UnsupportedHost when something else is asked for than the image has."""
    asked = [
        ("driver", driver, host.driver.installed if _is_wanted(host.driver.installed, spec.driver) else None),
        ("toolkit", toolkit, _toolkit(host, spec)),
    ]
    missing = [f"the {part}" for part, wanted, there in asked if wanted and there is None]
    missing += [f"CUDA {spec.cuda}"] if driver and spec.cuda else []
    if missing or removing:
        raise _refused(
            host, "the driver cannot be removed" if removing else f"{' and '.join(missing)} cannot be installed"
        )
    return tuple(
        Kept(f"{part}.install", f"{part} {there} of this host's image") for part, wanted, there in asked if wanted
    )


def _is_wanted(there: str | None, want: DriverRequest) -> bool:
    return there is not None and there.startswith(want.exact or str(want.branch or ""))


def _toolkit(host: HostFacts, spec: Spec) -> str | None:
    there = host.toolkit.version if host.toolkit.lost is None else None
    return there if spec.toolkit.version in (None, there) else None


def _refused(host: HostFacts, problem: str) -> UnsupportedHost:
    way = WAYS[host.image_based if host.image_based in WAYS else "read-only"]
    return UnsupportedHost(
        f"{host.hostname}: {problem} with packages: an image replaces /usr as a whole",
        evidence=way.evidence,
        remedy=Remedy(RepairAction.UPGRADE, f"{way.remedy}; then ", setup("--only", "runtime")),
    )
