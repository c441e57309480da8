"""`python -m tests.lab.real.prepare`: what the suite needs from the network, before it enters a namespace without one.

$GPUNODE_LAB/real/SUITE/www             the piece of Debian's archive (archive.py)
$GPUNODE_LAB/real/SUITE/kernel-newest   overlay layers on the lab's image of SUITE, with a Debian kernel in /boot and no
$GPUNODE_LAB/real/SUITE/kernel-release  headers: the newest, of the security updates; and that of the last point release

Remove $GPUNODE_LAB/real to have today's archive instead of the recorded one. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gpunode.catalog.load import load_catalog
from tests.lab import images
from tests.lab.shell import attempt, sh
from tests.lab.storage import cache, locked

from .archive import APT_CONF, EVERYTHING, record_root, recorder, sources

DISTRIBUTIONS = ("debian12", "debian13")
KERNELS = ("newest", "release")
TOOLS = ("qemu-system-x86", "busybox-static")
MODULE = "nvidia-open-kernel-dkms"
EXTRA = ("linux-headers-amd64", "dkms", "curl", "gnupg", "ca-certificates", "hello")
NO_DAEMONS = "#!/bin/sh\nexit 101\n"  # policy-rc.d: packages start nothing while a layer is built


def kernel_layer(suite: str, kernel: str) -> Path:
    """kernel: one of KERNELS."""
    return record_root(suite).with_name(f"kernel-{kernel}")


def is_ready(distribution: str) -> bool:
    return (record_root(images.suite(distribution)).with_name(".done")).exists()


def main() -> int:
    subprocess.run(("bash", str(images.BUILD), *map(images.suite, DISTRIBUTIONS)), check=True)
    if not shutil.which("qemu-system-x86_64"):
        print(f"lab: installing on this machine: {' '.join(TOOLS)}", file=sys.stderr)
        sh("apt-get", "install", "-y", "-qq", "--no-install-recommends", *TOOLS)
    for distribution in DISTRIBUTIONS:
        with locked(f"real-{distribution}"):
            if not is_ready(distribution):
                print(f"lab: recording Debian's archive for {distribution} (once, minutes)", file=sys.stderr)
                _prepare(distribution)
    return 0


def _prepare(distribution: str) -> None:
    suite = images.suite(distribution)
    directory = record_root(suite).parent
    shutil.rmtree(directory, ignore_errors=True)
    base, headers = images.layers(distribution, None), []
    with recorder(record_root(suite)) as proxy:
        for kernel in KERNELS:
            with _overlay(directory, base, kernel_layer(suite, kernel)) as root:
                headers.append(_install_kernel(root, suite, proxy, kernel).replace("image", "headers"))
        with _overlay(directory, base, directory / "scratch") as root:
            _record_drivers(root, distribution, proxy, headers)
    shutil.rmtree(directory / "scratch")
    (directory / ".done").touch()


def _install_kernel(root: Path, suite: str, proxy: str, kernel: str) -> str:
    """The package of its release. The last point release's comes without the meta-package: it is not followed."""
    apt = _Apt(root, proxy)
    apt.update(sources(suite, security=kernel == "newest"))
    depends = sh("chroot", root, "apt-cache", "depends", "linux-image-amd64").splitlines()
    package = next(line.split()[1] for line in depends if "Depends: linux-image-" in line)
    apt.get("install", "linux-image-amd64" if kernel == "newest" else package)
    apt.get("clean")
    apt.leave()
    return package


def _record_drivers(root: Path, distribution: str, proxy: str, headers: list[str]) -> None:
    """What setup may ask for: gpunode finds main alone and adds the rest, so apt asks for either list."""
    apt = _Apt(root, proxy)
    apt.update(sources(images.suite(distribution), EVERYTHING))
    apt.get("install", "--download-only", *EXTRA, *headers)
    _pin_to_module(root)
    apt.get("install", "--download-only", *_driver_packages(distribution))


def _driver_packages(distribution: str) -> list[str]:
    """What the catalog names for the open modules of the distribution's own archive."""
    found = next(d for d in load_catalog().distros if images.suite(distribution) in d.codenames)
    if found.archive is None:
        raise ValueError(f"the catalog has no driver in the archive of {distribution}")
    return [name for names in found.archive.sets for name in names.open]


def _pin_to_module(root: Path) -> None:
    """The module's version for all: Debian's security updates may be ahead with the libraries alone."""
    known = sh("chroot", root, "apt-cache", "show", "--no-all-versions", MODULE)
    version = next(line.split()[1] for line in known.splitlines() if line.startswith("Version:"))
    pin = f"Package: *nvidia* libcuda*\nPin: version {version.partition('-')[0]}*\nPin-Priority: 1001\n"
    (root / "etc/apt/preferences.d/record.pref").write_text(pin)


@contextlib.contextmanager
def _overlay(directory: Path, lower: tuple[Path, ...], upper: Path) -> Iterator[Path]:
    root, work = directory / "root", directory / "work"
    for path in (root, work, upper):
        path.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={':'.join(map(str, lower))},upperdir={upper},workdir={work}"
    sh("mount", "-t", "overlay", "gpunode-lab-real", "-o", options, root)
    try:
        sh("mount", "-t", "proc", "proc", root / "proc")
        yield root
    finally:
        attempt("umount", "-R", root)
        if not os.path.ismount(root):
            shutil.rmtree(work)
            root.rmdir()


class _Apt:
    """apt-get below a root, through the recording proxy; what it printed is kept in the cache's log/."""

    def __init__(self, root: Path, proxy: str) -> None:
        self._root = root
        self._own = {
            root / "etc/apt/apt.conf.d/00record": f'{APT_CONF}Acquire::http::Proxy "{proxy}";\n',
            root / "usr/sbin/policy-rc.d": NO_DAEMONS,
        }
        for path, text in self._own.items():
            path.write_text(text)
            path.chmod(0o755)
        (root / "etc/apt/sources.list").unlink(missing_ok=True)
        self._log = cache() / "log" / "real.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)

    def update(self, list_of_sources: str) -> None:
        (self._root / "etc/apt/sources.list.d/debian.sources").write_text(list_of_sources)
        self.get("update", "--error-on=any")

    def get(self, *words: str) -> None:
        argv = ("chroot", str(self._root), "apt-get", "-y", "--no-install-recommends", *words)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        with self._log.open("a") as out:
            done = subprocess.run(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, check=False)
        if done.returncode:
            raise SystemExit(f"lab: apt-get {' '.join(words)} ended with code {done.returncode}; see {self._log}")

    def leave(self) -> None:
        for path in self._own:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
