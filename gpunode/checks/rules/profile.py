"""What kind of node a host is, by its facts, where nobody said it."""

from __future__ import annotations

from gpunode.catalog.load import Catalog
from gpunode.catalog.profiles import Profile, profiles
from gpunode.checks.health.seen import is_laptop
from gpunode.model.facts import HostFacts
from gpunode.model.report import ChosenProfile
from gpunode.model.rules import AUTO


def chosen_profile(name: str, by: str, host: HostFacts, catalog: Catalog) -> tuple[Profile, ChosenProfile]:
    """The profile of that name, and who chose it (`by`); the one that the facts say for "auto"."""
    why = by
    if name == AUTO:
        name, why = fitting(host, catalog)
    profile = profiles()[name]
    return profile, ChosenProfile(name, profile.title, why)


def fitting(host: HostFacts, catalog: Catalog) -> tuple[str, str]:
    """The profile's name and what says so. Only what is sure leaves a check out: a desktop without a laptop's GPU, or a
    virtual machine that becomes an image, looks like any host.
    """
    if host.init == "chroot":
        return "image", "no init runs: this is a root directory that is being built"
    if switches := catalog.nvswitches(host) or host.driver.switch_management:
        return "hgx", f"{len(switches)} NVSwitches"
    if host.kubernetes.kubelet or any(one.embedded_in for one in host.runtimes):
        return "kubernetes", "a kubelet"
    smi = host.driver.smi
    if laptop := next((gpu for gpu in (smi.gpus if smi else ()) if is_laptop(gpu)), None):
        return "workstation", f"its GPU is a {laptop.name}"
    return "docker", "no kubelet, NVSwitch or laptop GPU"
