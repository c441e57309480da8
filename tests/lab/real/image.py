"""An image that is being made: a chroot that no machine runs, with Debian's own list of sources and a Debian kernel."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.lab import hardware, images, network, repositories
from tests.lab.host import PATH, Host, Result
from tests.lab.lab import Lab
from tests.lab.site import ROOT

from .archive import APT_CONF, HOSTS, record_root, sources
from .prepare import kernel_layer

SETUP = "gpunode setup --yes --allow-no-gpu --driver-source distro --flavour open"
# Process 1 of the chroot's namespace stands outside it, as on a machine where images are made.
ENTER = """
mount -t proc proc "$1/proc"
status=0
env -i PATH="$3" HOME=/root LC_ALL=C.UTF-8 chroot "$1" sh -c "$2" </dev/null || status=$?
exit "$status"
"""


@dataclass(frozen=True)
class Image:
    host: Host  # never started: its files are the image

    @property
    def root(self) -> Path:
        return self.host.files.root

    @property
    def kernel(self) -> str:
        """The release in its /boot."""
        (found,) = (self.root / "boot").glob("vmlinuz-*")
        return found.name.partition("-")[2]

    def run(self, cmd: str, *, timeout: float = 5400) -> Result:
        """As root in the image, in a process namespace that ends with the command."""
        argv = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-eu", "-c", ENTER, "image")
        return subprocess.run(
            (*argv, str(self.root), cmd, PATH), text=True, capture_output=True, timeout=timeout, check=False
        )

    def says(self, cmd: str) -> str:
        """What a command that must succeed prints."""
        done = self.run(cmd)
        assert done.returncode == 0, f"{cmd!r}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()


def make_image(lab: Lab, distribution: str, kernel: str, site: Path) -> Image:
    """Debian's archive answers under its own names, and gpunode is installed."""
    suite = images.suite(distribution)
    for name in HOSTS:
        repositories.copy_root(record_root(suite) / name, lab.web.root / name)
        lab.dns.names[name] = network.GATEWAY
    files = {
        "/etc/apt/sources.list.d/debian.sources": sources(suite),
        "/etc/apt/apt.conf.d/99record": APT_CONF,
    }
    host = lab.host(distribution, start=False, files=files, above=(kernel_layer(suite, kernel),))
    _without_stand_ins(host)
    host.install_gpunode(ROOT, site)
    return Image(host)


def _without_stand_ins(host: Host) -> None:
    """The true modprobe, modinfo and update-initramfs again, where the image has them; a lab host comes with others."""
    for place in hardware.PLACES.values():
        host.path(place).unlink()
        true = next((layer / place.lstrip("/") for layer in host.recipe.lower if _holds(layer, place)), None)
        if true is not None:
            shutil.copy2(true, host.path(place), follow_symlinks=False)


def _holds(layer: Path, place: str) -> bool:
    path = layer / place.lstrip("/")
    return path.is_symlink() or path.is_file()
