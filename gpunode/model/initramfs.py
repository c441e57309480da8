"""What the images that a kernel boots from hold of the drivers that compete for a GPU."""

from __future__ import annotations

from gpunode.values import dataclass


@dataclass(frozen=True)
class InitramfsImage:
    release: str
    path: str  # "/boot/initrd.img-6.12.107+deb13-amd64"
    newer: frozenset[str] = frozenset()  # what was written after it: "configuration" (dracut's omissions), "module"
    modules: frozenset[str] | None = None  # of nouveau, nova_core, nvidia: those in it; None: it was not looked into
    blacklists: bool = False  # the modprobe.d files in it blacklist nouveau; False where it was not looked into


@dataclass(frozen=True)
class DracutFacts:
    omitted: frozenset[str]  # drivers that dracut.conf(5) keeps out of the initramfs (underscores)
    added: frozenset[str]  # drivers that it asks for; dracut then takes them even if they are omitted
    blocked: frozenset[str] = frozenset()  # modules that the kernel command line blacklists, in the initramfs too
    images: tuple[InitramfsImage, ...] = ()

    @property
    def kept_out(self) -> frozenset[str]:
        """Modules that an initramfs built now does not load."""
        return self.omitted - self.added | self.blocked
