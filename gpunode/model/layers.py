"""The layers of a GPU node, lowest first: what is wrong in one is felt in those above it."""

from __future__ import annotations

from collections.abc import Mapping

# A check's group (the id's first word) -> its layer, in the order in which a person repairs.
LAYERS: Mapping[str, str] = {
    "pci": "hardware",
    "health": "hardware",
    "boot": "boot",
    "drv": "driver",
    "user": "driver",
    "setup": "driver",
    "mig": "devices",
    "dev": "devices",
    "svc": "services",
    "ctk": "toolkit",
    "rt": "runtime",
    "smoke": "runtime",
    "k8s": "Kubernetes",
    "sec": "OS",
    "os": "OS",
    "net": "OS",
    "fleet": "fleet",
    "expect": "expectations",
}
GROUPS = tuple(LAYERS)


def group_of(id: str) -> str:
    """ "drv" for "drv.dkms-next"."""
    return id.partition(".")[0]


def depth(id: str) -> int:
    """How far up a check stands; a group that is not known (a check of the site's own) stands above all."""
    group = group_of(id)
    return GROUPS.index(group) if group in LAYERS else len(GROUPS)
