"""What every part of the plan is made from: the host, what is wanted, the catalog, and the row of this distribution."""

from __future__ import annotations

from dataclasses import replace

from gpunode.catalog.distros import Distro, derivative
from gpunode.catalog.gpus import GpuModel
from gpunode.catalog.load import Catalog
from gpunode.errors import UnsupportedHost, UsageError
from gpunode.model.action import Run
from gpunode.model.bundle import HOME, VENDOR
from gpunode.model.facts import HostFacts, PciDevice, ServiceFacts
from gpunode.model.spec import Spec
from gpunode.packages.base import Backend
from gpunode.packages.registry import BACKENDS, backend
from gpunode.remedy import Remedy, RepairAction, setup
from gpunode.values import dataclass


@dataclass(frozen=True)
class Site:
    host: HostFacts
    spec: Spec
    catalog: Catalog
    distro: Distro
    backend: Backend
    gpu_models: tuple[GpuModel, ...]
    switches: tuple[PciDevice, ...]
    done: frozenset[str] = frozenset()  # steps of the same run's earlier passes
    from_bundle: bool = False  # all packages come from a bundle that is unpacked on the host

    @property
    def fabric(self) -> str | None:
        """What joins the GPUs: "nvswitch" | "nvlink5" | "imex"; None for GPUs that stand alone.

        Switches of the first kind are seen on PCI. HGX B200 and B300 show theirs only as network functions for their
        management, and a single such GPU in a virtual machine has none. Trays have no switch of their own.
        """
        kinds = {model.fabric for model in self.gpu_models}
        if self.switches:
            return "nvswitch"
        if "imex" in kinds:
            return "imex"
        return "nvlink5" if "nvlink5" in kinds and self.host.driver.switch_management else None

    @property
    def systemd(self) -> bool:
        return self.host.init == "systemd"

    def service(self, name: str) -> ServiceFacts:
        services = self.host.services
        return services.get(name) or services.get(f"{name}.service") or ServiceFacts()


def survey(host: HostFacts, spec: Spec, catalog: Catalog, done: frozenset[str] = frozenset()) -> Site:
    """Raises UnsupportedHost for a distribution without a row that is like none; the message lists those with one."""
    distro = catalog.distro(host.os) or _derivative(host, catalog)
    if distro is None:
        name = host.os.pretty_name or f"{host.os.id} {host.os.version_id}"
        raise UnsupportedHost(
            f"{host.hostname}: {name} is not a distribution gpunode installs drivers or the toolkit on",
            evidence="it does on " + ", ".join(d.name for d in catalog.distros),
            remedy=Remedy(RepairAction.UPGRADE, "install both manually, then ", setup("--only", "runtime")),
        )
    refuse_proxy_password(spec)
    models = tuple(catalog.gpu_model(gpu.device) for gpu in host.own_gpus)
    manager, from_bundle = _manager(distro, host), spec.mirror == f"file://{HOME}/{VENDOR}"
    if from_bundle:
        manager = manager.alone()
    return Site(host, spec, catalog, distro, manager, models, catalog.nvswitches(host), done, from_bundle)


def _derivative(host: HostFacts, catalog: Catalog) -> Distro | None:
    """What stands for a distribution like one of the catalog's, and with its manager.

    Other releases of one with a row are refused, but those of a derivative: LMDE calls itself linuxmint, and is Debian.
    """
    if any(distro.id == host.os.id and distro.base is None for distro in catalog.distros):
        return None
    like = next((d for name in host.os.id_like for d in catalog.distros if d.id == name), None)
    if like is None or _manager(like, host).name != host.packages.manager:
        return None
    return derivative(host.os, like)


def _manager(distro: Distro, host: HostFacts) -> Backend:
    """The catalog's, in the generation that this host has: a Fedora may still have the older one of its family."""
    named, seen = backend(distro.manager), BACKENDS.get(host.packages.manager or "")
    return seen if seen and seen.family and seen.family == named.family else named


def refuse_proxy_password(spec: Spec) -> None:
    """A proxy reaches commands through their environment, which other users of the host may see in logs."""
    if spec.proxy and "@" in spec.proxy.split("//")[-1].split("/")[0]:
        raise UsageError(
            "--proxy must not contain a password",
            evidence="it would stand in the environment of commands and in unit files on the host",
            remedy="write it into the package manager's own configuration (apt.conf.d, dnf.conf) on the host",
        )


def through_proxy(run: Run, proxy: str | None) -> Run:
    """The same command, with the proxy in its environment."""
    if not proxy:
        return run
    env = (("http_proxy", proxy), ("https_proxy", proxy))
    return replace(run, env=run.env + env)
