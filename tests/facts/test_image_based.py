"""Whether an image replaces this host's /usr, as the probe tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from tests.facts.hosts import make_root, run_probe

ROOT = "/dev/sda2 / {type} {options},relatime 0 0\n"
WRITABLE = ROOT.format(type="btrfs", options="rw")
READ_ONLY = ROOT.format(type="btrfs", options="ro")
USR = "/dev/sda3 /usr ext4 ro 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "tool", "found"),
    [
        (WRITABLE, "transactional-update", None),
        (READ_ONLY, "transactional-update", "transactional-update"),
        (READ_ONLY, None, "read-only"),
        (WRITABLE + USR, None, "read-only"),
        (READ_ONLY + "/dev/sda3 /usr ext4 rw,ro=no 0 0\n", None, None),
        (WRITABLE + "/dev/sr0 /usr/share/media iso9660 ro 0 0\n", None, None),
        (WRITABLE + "tmpfs /mnt\\040/usr tmpfs ro 0 0\n", None, None),
        ("", None, None),
    ],
    ids=[
        "a tool alone is no image",
        "transactional-update",
        "a read-only root",
        "a read-only /usr",
        "a writable /usr on a read-only root",
        "read-only below /usr",
        "a mount point that ends in /usr",
        "nothing mounted on /",
    ],
)
def test_an_image_is_known_by_what_is_mounted_on_usr(
    tmp_path: Path, mounts: str, tool: str | None, found: str | None
) -> None:
    root = make_root(tmp_path)
    (root / "proc" / "mounts").write_text(mounts)
    if tool:
        (root / "usr" / "sbin").mkdir(parents=True, exist_ok=True)
        (root / "usr" / "sbin" / tool).write_text("#!/bin/sh\n")
        (root / "usr" / "sbin" / tool).chmod(0o755)
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").image_based == found


@pytest.mark.parametrize(("chroot", "found"), [(False, "ostree"), (True, None)], ids=["booted", "of the image builder"])
def test_ostree_says_that_it_booted_this_host(tmp_path: Path, chroot: bool, found: str | None) -> None:
    root = make_root(tmp_path)
    (root / "run" / "ostree-booted").touch()
    (root / "proc" / "1").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "1" / "root").symlink_to(tmp_path.parent if chroot else root)
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").image_based == found
