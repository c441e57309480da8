"""`gpunode export mkosi`: each Debian's mkosi builds an image of it, and the image's first boot has a GPU.

mkosi runs on a lab host, whose own root is the base of the image: the lab has no distribution to install from.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode.cli.app import main

from . import images
from .host import Host, Result
from .lab import Lab
from .product_runs import expect
from .wide import cases

AT = "/srv/image"
BASE = "/srv/base"
# Bound into the host from a disk of its own (lab/filesystem.py): no part of what is copied as the base.
PLACE = "/var/lib/docker/mkosi"
KEPT = "/var/lib/gpunode/image"
INCLUDING = f"""[Distribution]
Distribution=custom
[Output]
Format=directory
Output=image
OutputDirectory={PLACE}/out
[Content]
BaseTrees={BASE}
Bootable=no
[Include]
Include=gpunode
"""
# It includes no directory and has no `custom`: what the recipe holds is named, and the output is what differs from the
# base.
NAMED = (
    *("mkosi", "--force", "--distribution=debian", "--release=bookworm", "--format=directory", "--bootable=no"),
    *(f"--output={PLACE}/out/image", f"--workspace-dir={PLACE}/work", f"--base-image={BASE}", "--with-network=yes"),
    *("--extra-tree=gpunode/mkosi.extra", "--postinst-script=gpunode/mkosi.postinst.chroot", "build"),
)
# For a kernel that the image has, as a distribution's kernel package leaves it; its headers come from the repository.
PREPARE = f"""
set -e
mkdir -p {BASE} {PLACE}/out {PLACE}/work {PLACE}/upper {PLACE}/overlay
if [ -n "$copies" ]; then
  mount -t overlay overlay -o lowerdir=/,upperdir={PLACE}/upper,workdir={PLACE}/overlay {BASE}
  rm -rf {BASE}/dev/*  # mkosi copies what they hold, and some have no end
else
  mount --bind / {BASE}  # an overlay on two others would be one too many
fi
mkdir -p {BASE}/boot "{BASE}/lib/modules/$(uname -r)"
: >"{BASE}/boot/vmlinuz-$(uname -r)"
"""
# What differs from the base, on top of it.
WHOLE = f"""
set -e
mount -t overlay overlay -o lowerdir={PLACE}/out/image:{BASE} /mnt
cp -a /mnt {PLACE}/out/whole
umount /mnt
rm -rf {PLACE}/out/image
mv {PLACE}/out/whole {PLACE}/out/image
"""


@dataclass(frozen=True)
class Mkosi:
    """One Debian's mkosi on a host of the lab."""

    host: Host
    distribution: str

    def build(self) -> Result:
        """`mkosi build` in a directory that has the export as `gpunode`."""
        if self.distribution == "debian12":
            return self.host.nsrun(f"cd {AT} && {shlex.join(NAMED)}")
        return self.host.nsrun(f"cd {AT} && mkosi --force --workspace-directory={PLACE}/work build")

    def layers(self) -> tuple[Path, ...]:
        """The image as lower layers of a host."""
        if self.distribution == "debian12":
            self.host.nsrun(WHOLE, check=True)
        return (self.host.files.data / "docker" / "mkosi" / "out" / "image",)


@pytest.fixture(params=cases(images.MKOSI))
def mkosi(request: pytest.FixtureRequest, lab: Lab) -> Mkosi:
    distribution = request.param
    if not (images.MKOSI[distribution] / ".done").exists():
        raise RuntimeError(f"no image with mkosi; run {images.BUILD} {images.suite(distribution)}")
    host = lab.host(distribution, gpu="none", runtime="docker", above=(images.MKOSI[distribution],))
    copies = distribution != "debian12"
    host.nsrun(f"copies={'1' if copies else ''}\n{PREPARE}", check=True)
    if copies:
        host.write(f"{AT}/mkosi.conf", INCLUDING)
    return Mkosi(host, distribution)


def put_export(lab: Lab, host: Host, directory: Path) -> None:
    words = ("--driver", "595", "--flavour", "open", "--trust-key", lab.repo_fingerprint)
    assert main(["export", "mkosi", *words, "--output", str(directory)]) == 0
    for path in (one for one in directory.rglob("*") if one.is_file()):
        name = path.relative_to(directory).as_posix()
        host.write(f"{AT}/gpunode/{name}", path.read_bytes(), path.stat().st_mode & 0o777)


def test_mkosi_builds_an_image_that_boots_with_a_gpu(mkosi: Mkosi, lab: Lab, tmp_path: Path) -> None:
    builder = mkosi.host
    assert builder.nsrun("python3 -c 'import typer'").returncode != 0, "the host has our packages"
    put_export(lab, builder, tmp_path / "gpunode")
    zipapp = f"{AT}/gpunode/mkosi.extra/var/lib/gpunode.pyz"
    builder.nsrun(f"mv {zipapp} {zipapp}.kept && echo 'touch /pwned' >{zipapp}", check=True)
    other = mkosi.build()
    assert other.returncode != 0
    assert "nothing was run" in other.stdout + other.stderr

    builder.nsrun(f"mv {zipapp}.kept {zipapp}", check=True)
    before = builder.nsrun("systemctl show docker containerd -p MainPID; ls /sys/module /etc/docker").stdout
    built = mkosi.build()
    assert built.returncode == 0, built.stdout[-4000:] + built.stderr[-4000:]
    assert builder.nsrun("systemctl show docker containerd -p MainPID; ls /sys/module /etc/docker").stdout == before

    node = lab.host(mkosi.distribution, gpu="h100", image=mkosi.layers(), start=False)
    assert not node.exists("/pwned")
    assert not node.exists("/var/lib/gpunode.pyz"), "what mkosi copied in stays in the image"
    assert not node.exists("/var/lib/gpunode-spec.yaml")
    node.start()
    expect(node.run(f"/usr/bin/python3 -I {KEPT}/gpunode-*.pyz check", user="root"), 0)
    assert "H100" in expect(node.run("nvidia-smi -L", user="root"), 0).stdout
    expect(node.run(f"/usr/bin/python3 -I {KEPT}/gpunode-*.pyz setup --yes --spec {KEPT}/spec.yaml", user="root"), 0)
