"""Which files decide how this host's kubelet starts, and in which form each of them says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from gpunode.catalog.runtimes import merged_by_rancher
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts
from gpunode.model.kubernetes import KubeletSettings
from gpunode.regex import regex

Form = Literal["flags", "configuration", "kubelet-arg"]
UNIT_DIRECTORY = "/etc/systemd/system/"
PACKAGED = ("/usr/lib/", "/lib/")
MICROK8S = "/var/snap/microk8s/current/args/kubelet"
# Environment files that the probe looks for (shell/probe/kubernetes.sh): one that it does not have is not there.
READ_BY_PROBE = ("/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")
EXTRA_ARGS = "KUBELET_EXTRA_ARGS"  # the variable that kubeadm's unit leaves to people
_ENVIRONMENT_FILE = regex(r"^[ \t]*EnvironmentFile[ \t]*=[ \t]*-?(/[^\s\"']+)[ \t]*$", re.MULTILINE)
_UNIT = regex(r"(/etc/systemd/system|/usr/lib/systemd/system|/lib/systemd/system)/kubelet\.service(\.d/[^/]+\.conf)?")


class Place(NamedTuple):
    """A file that is there, or that the kubelet's unit would read."""

    file: FileFacts
    form: Form

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def is_packaged(self) -> bool:
        """It belongs to a package, whose next version replaces it."""
        return self.path.startswith(PACKAGED)


def places(host: HostFacts) -> tuple[Place, ...]:
    """In the order in which they are read; files that are not there are left out."""
    return tuple(dict.fromkeys(place for place in _places(host) if place.file.exists))


def units(host: HostFacts) -> tuple[FileFacts, ...]:
    """The kubelet's unit and its drop-ins."""
    return tuple(host.files[path] for path in sorted(host.files) if _UNIT.fullmatch(path) and host.files[path].text)


def environment_files(host: HostFacts) -> tuple[str, ...]:
    """What the unit names as EnvironmentFile=, there or not."""
    texts = "\n".join(unit.text or "" for unit in units(host))
    return tuple(dict.fromkeys(_ENVIRONMENT_FILE.findall(texts)))


def _places(host: HostFacts) -> Iterator[Place]:
    distribution, settings = host.kubernetes.distribution, host.kubernetes.settings or KubeletSettings()
    if distribution in ("k3s", "rke2"):
        for path in sorted(host.files):
            if merged_by_rancher(f"/etc/rancher/{distribution}", path):
                yield Place(host.files[path], "kubelet-arg")
        yield from _drop_ins(host, settings)
        return
    if distribution == "microk8s":
        yield Place(host.file(MICROK8S), "flags")
        return
    if distribution == "k0s":
        return  # it writes what its kubelet reads anew at every start, from the cluster's worker profiles
    for unit in units(host):
        yield Place(unit, "flags")
    for path in environment_files(host):
        yield Place(host.file(path), "flags")
    if settings.config:
        yield Place(host.file(settings.config), "configuration")
    yield from _drop_ins(host, settings)


def _drop_ins(host: HostFacts, settings: KubeletSettings) -> Iterator[Place]:
    """The first of k3s' and rke2's (00-k3s-defaults.conf) is written anew at every start, with what they know."""
    if settings.config_dir:
        inside = re.compile(re.escape(settings.config_dir.rstrip("/")) + r"/(?!00-(?:k3s|rke2)-)[^/]+\.conf")
        yield from (Place(host.files[path], "configuration") for path in sorted(host.files) if inside.fullmatch(path))
