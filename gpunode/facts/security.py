"""Secure Boot, kernel lockdown and SELinux."""

from __future__ import annotations

import re

from gpunode.facts.release import key_values
from gpunode.model.facts import SecurityFacts

_SELINUX = {"0": "Permissive", "1": "Enforcing", "-": "Disabled"}


def parse_security(text: str) -> SecurityFacts:
    """Values from sysfs; a missing secure_boot line on a UEFI machine means that it could not be read:

    uefi=1
    secure_boot=1
    lockdown=none [integrity] confidentiality
    selinux=1
    selinux_devices=0 0
    mok_key=/root/keys/mok.key
    mok_certificate=/root/keys/mok.pub
    mok_enrolled=1
    """
    value = key_values(text)
    chosen = re.search(r"\[(\w+)\]", value.get("lockdown", ""))
    return SecurityFacts(
        secure_boot={"0": False, "1": True}.get(value.get("secure_boot", "")),
        uefi={"0": False, "1": True}.get(value.get("uefi", "")),
        lockdown=chosen[1] if chosen else None,
        selinux=_SELINUX.get(value.get("selinux", "")),
        containers_may={"0": False, "1": True}.get(value.get("selinux_devices", "")[:1]),
        mok_pending=value.get("mok_pending") == "1",
        mok_key=value.get("mok_key"),
        mok_certificate=value.get("mok_certificate"),
        mok_enrolled={"0": False, "1": True}.get(value.get("mok_enrolled", "")),
    )
