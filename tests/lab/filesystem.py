"""A host's root: an overlay of image layers and a writable upper, which can be a disk that loses unsynced data."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from .shell import sh

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32): linux/fs/ext4/ext4.h
NO_LOG_FLUSH = 2


@dataclass(frozen=True)
class Filesystem:
    """Everything that survives a reboot of one host, and /var/lib/docker and containerd beside it.

    Those two are bind mounts: overlayfs cannot be stacked on an overlay upper.
    """

    directory: Path  # this host's own, below the run directory
    lower: tuple[Path, ...]  # image layers, topmost first
    disk_mib: int | None  # an ext4 image of this size: ENOSPC and power cuts are real
    tmpfs_root: str | None  # size of a tmpfs for the upper, such as "40M": a full disk without the ext4

    @property
    def root(self) -> Path:
        """The merged tree as the host sees it; files may be written here before, between and during boots."""
        return self.directory / "root"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def create(self) -> None:
        self.directory.mkdir(parents=True)
        if self.disk_mib:
            self._create_disk(self.disk_mib)
        if self.tmpfs_root:
            layer = self.directory / "layer"
            layer.mkdir()
            sh("mount", "-t", "tmpfs", "-o", f"size={self.tmpfs_root},mode=755", "tmpfs", layer)
        engines = (self.data / name for name in ("docker", "containerd", "podman"))
        for path in (self._upper, self._work, self.root, *engines):
            path.mkdir(parents=True, exist_ok=True)
        self.mount()

    def mount(self) -> None:
        if os.path.ismount(self.root):
            return
        options = f"lowerdir={':'.join(map(str, self.lower))},upperdir={self._upper},workdir={self._work}"
        sh("mount", "-t", "overlay", "gpunode-lab", "-o", options, self.root)

    def made_size_mib(self) -> int:
        """Of the disk that was made for this host alone; raises ValueError where its root has no size of its own."""
        status = os.statvfs(self.root)  # an overlay says what its upper's file system says
        size_mib = status.f_blocks * status.f_frsize >> 20
        asked = self.disk_mib or _mib(self.tmpfs_root or "0M")
        if not os.path.ismount(self.root) or not asked or size_mib > asked:
            raise ValueError(f"{self.root} is on a disk of {size_mib} MiB: only one made with a size is ever filled")
        return size_mib

    def unmount(self) -> None:
        if os.path.ismount(self.root):
            sh("umount", "-R", self.root)

    def destroy(self) -> None:
        self.unmount()
        for path in (self.directory / "layer", self.directory / "disk"):
            if os.path.ismount(path):
                sh("umount", "-R", path)
        shutil.rmtree(self.directory)

    def lose_unsynced(self) -> None:
        """What the platter held when the power went: the ext4 stops without flushing its journal, then replays it.

        Call before the processes are killed, so that nothing gets to tidy up.
        """
        disk = os.open(self._disk, os.O_RDONLY)
        try:
            fcntl.ioctl(disk, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(disk)

    def replay_journal(self) -> None:
        self.unmount()
        sh("umount", self._disk)
        self._mount_disk()
        shutil.rmtree(self._work)
        self._work.mkdir()
        self.mount()

    def snapshot(self, tag: str) -> None:
        """Copy the writable layer; the host is down."""
        self.unmount()
        kept = self.directory / "snapshots" / tag
        kept.mkdir(parents=True)
        sh("cp", "-a", self._upper, kept / "upper")
        sh("cp", "-a", self.data.resolve(), kept / "data")  # of a disk, it is a link into that
        self.mount()

    def restore(self, tag: str) -> None:
        self.unmount()
        kept = self.directory / "snapshots" / tag
        for path, copy in ((self._upper, kept / "upper"), (self.data.resolve(), kept / "data")):
            shutil.rmtree(path)
            sh("cp", "-a", copy, path)
        shutil.rmtree(self._work)  # it belongs to the upper that is gone
        self._work.mkdir()
        self.mount()

    def _create_disk(self, size_mib: int) -> None:
        image = self.directory / "disk.img"
        sh("truncate", "-s", f"{size_mib}M", image)
        sh("mkfs.ext4", "-q", "-m0", "-E", "lazy_itable_init=1,lazy_journal_init=1", image)
        self._disk.mkdir()
        self._mount_disk()
        (self._disk / "data").mkdir()
        self.data.symlink_to(self._disk / "data")
        (self.directory / "layer").symlink_to(self._disk)

    def _mount_disk(self) -> None:
        sh("mount", "-o", "loop", self.directory / "disk.img", self._disk)

    @property
    def _disk(self) -> Path:
        return self.directory / "disk"

    @property
    def _upper(self) -> Path:
        return self.directory / "layer" / "upper"

    @property
    def _work(self) -> Path:
        return self.directory / "layer" / "work"


def _mib(size: str) -> int:
    """Of a tmpfs size such as "40M"."""
    if not size.endswith("M"):
        raise ValueError(f"{size!r} is not a number of megabytes such as 40M")
    return int(size[:-1])
