"""The lab of one test run: a bridge, its internet, and the hosts on it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path
from types import TracebackType

from . import authority, containment, foreign, hardware, images, network, repositories
from .cgroups import unified
from .dns import Dns
from .host import Host, Recipe
from .storage import claim_run_directory, release_run_directory, sweep
from .web import Web

NAMES = (repositories.CUDA_HOST, repositories.TOOLKIT_HOST)
TOOLS = (
    "systemd-nspawn",
    "ip",
    "ssh",
    "ssh-keygen",
    "openssl",
    "gpg",
    "apt-ftparchive",
    "rpmbuild",
    "createrepo_c",
    "dpkg-deb",
    "setpriv",
    "nsenter",
    "busybox",
)


def why_not() -> str | None:
    """Why hosts cannot be started here, or None."""
    if os.geteuid() != 0:
        return "not root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}; run tests/lab/images/build.sh"
    if network.has_default_route():
        return "in a network namespace with a way out; start it with tests/lab/run.sh"
    if exposed := containment.why_exposed():
        return exposed
    unbuilt = dict.fromkeys(suite for name, suite in images.EVERY.items() if not images.is_built(name))
    if unbuilt:
        return f"no image of {', '.join(unbuilt)}; run tests/lab/images/build.sh {' '.join(unbuilt)}"
    if unified() is None:
        return "no cgroup v2 hierarchy"
    return None


class Lab:
    """A context manager. Hosts made by `host` live until `destroy_hosts` or the end."""

    def __init__(self) -> None:
        _end_tidily()
        sweep()
        self.run_directory = claim_run_directory()
        self.trust = authority.establish(NAMES, self.run_directory / "trust")
        self.hosts: dict[str, Host] = {}
        self._number = network.FIRST_HOST - 1
        self._numbering = threading.Lock()
        repositories.copy_root(repositories.web_root(self.trust), self.run_directory / "www")
        network.create_bridge()
        self.dns = Dns(NAMES, network.GATEWAY)
        self.web = Web(self.run_directory / "www", self.trust.server, network.GATEWAY)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def key(self) -> Path:
        """Private ssh key that every host's users accept."""
        return self.trust.ssh_key

    @property
    def repo_fingerprint(self) -> str:
        """Of the key that signs the stub repositories, for --trust-key."""
        return self.trust.vendor.fingerprint

    def host(
        self,
        distribution: str = "debian12",
        *,
        gpu: str = "none",
        runtime: str | None = None,
        files: dict[str, str] | None = None,
        disk: int | None = None,
        tmpfs_root: str | None = None,
        above: tuple[Path, ...] = (),
        image: tuple[Path, ...] = (),
        name: str | None = None,
        start: bool = True,
        wait: bool = True,
    ) -> Host:
        """A new host, booted until its sshd answers.

        distribution is a key of images.EVERY, gpu one of hardware.MACHINES, runtime None, "docker", "containerd",
        "podman" or "rootless" (docker, with what a user's own one needs); disk is MiB of a real ext4, tmpfs_root a size
        such as "40M"; above are further image layers, topmost first; image are layers in place of the
        distribution's and its runtime's, with what is enabled in them; files are written before the first boot.
        """
        number = self._next_number()
        lower = (*above, *(image or images.layers(distribution, runtime)))
        recipe = Recipe(distribution, gpu, runtime, dict(files or {}), lower, disk, tmpfs_root)
        host = Host(name or f"node{number}", number, self.run_directory, self.key, recipe)
        if host.name in self.hosts:
            raise ValueError(f"{host.name} exists already")
        self.hosts[host.name] = host
        host.files.create()
        _furnish(host, self.trust, self.web.root)
        if start:
            host.start(wait=wait)
        return host

    def reset(self) -> None:
        """Between tests: no hosts, no faults, the repositories as built."""
        self.destroy_hosts()
        self.dns.reset(NAMES)
        self.web.site.reset()
        shutil.rmtree(self.web.root)
        repositories.copy_root(repositories.web_root(self.trust), self.web.root)

    def destroy_hosts(self) -> None:
        for host in list(self.hosts.values()):
            host.destroy()
            del self.hosts[host.name]

    def close(self) -> None:
        self.destroy_hosts()
        self.web.close()
        self.dns.close()
        network.delete_bridge()
        release_run_directory(self.run_directory)

    def _next_number(self) -> int:
        """Addresses are used up one after another, so that none has a predecessor's ARP entry; then from the start."""
        with self._numbering:
            taken = {host.addr for host in self.hosts.values()}
            for _ in range(network.LAST_HOST):
                self._number += 1
                if self._number > network.LAST_HOST:
                    self._number = network.FIRST_HOST
                if network.host_address(self._number) not in taken:
                    return self._number
        raise RuntimeError("every address of the lab is taken")


def _end_tidily() -> None:
    """SIGTERM, such as timeout(1) sends, unwinds as ^C does; else hosts would run on until the next lab sweeps them."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def _furnish(host: Host, trust: authority.Trust, web: Path) -> None:
    """What makes an image this host: name, address, trust, package sources, GPUs, units, the test's files."""
    host.write("/etc/hostname", f"{host.name}\n")
    host.write("/etc/hosts", f"127.0.0.1 localhost\n{host.addr} {host.name}\n")
    # nspawn's word that this is a container: to gpunode such a host is a machine, with a kernel and GPUs of its own.
    host.write("/etc/tmpfiles.d/lab.conf", "r! /run/systemd/container\n")
    host.write("/etc/lab-addr", f"{host.addr}\n")
    host.write("/etc/lab-gateway", f"{network.GATEWAY}\n")
    host.write("/etc/resolv.conf", f"nameserver {network.GATEWAY}\n")
    authority.believe(host, trust)
    if host.recipe.distribution in images.FOREIGN:
        foreign.disguise(host, trust, web)
    else:
        _set_package_sources(host, trust)
    hardware.fit(host)
    _enable_runtime(host)
    for path, text in host.recipe.files.items():
        host.write(path, text)


def _set_package_sources(host: Host, trust: authority.Trust) -> None:
    """The lab's Debian instead of the mirror that the image came from; nobody else's key is trusted for it."""
    for old in (host.path("/etc/apt/sources.list"), *host.path("/etc/apt/sources.list.d").iterdir()):
        old.unlink(missing_ok=True)
    # mmdebstrap keeps its options in the image; expired Release files must stay an error here.
    host.write("/etc/apt/apt.conf.d/99mmdebstrap", 'Acquire::Languages "none";\n')
    keyring = "/usr/share/keyrings/lab-debian.asc"
    host.write(keyring, trust.debian.armored())
    suite = images.suite(host.recipe.distribution)
    host.write(
        "/etc/apt/sources.list.d/debian.sources",
        (
            f"Types: deb\nURIs: http://{repositories.DEBIAN_HOST}/debian\nSuites: {suite}\n"
            f"Components: main\nSigned-By: {keyring}\n"
        ),
    )


def _enable_runtime(host: Host) -> None:
    units = {"docker": ("docker", "containerd"), "containerd": ("containerd",)}.get(host.recipe.runtime or "", ())
    wants = host.path("/etc/systemd/system/multi-user.target.wants")
    for unit in units:
        (wants / f"{unit}.service").symlink_to(f"/lib/systemd/system/{unit}.service")
