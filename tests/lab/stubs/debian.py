"""What gpunode needs of Debian's own archive: kernel headers for the running kernel, and dkms."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .deb import File, Package
from .driver import text

KERNEL_VERSION = "6.12.107-1"  # any: the kernel itself is this machine's
DKMS_VERSION = "3.0.10-8+deb12u1"


def packages() -> Iterator[Package]:
    kernel = os.uname().release
    headers = f"linux-headers-{kernel}"
    yield Package("dkms", DKMS_VERSION, files={"/usr/sbin/dkms": File(text("dkms"), 0o755)})
    yield Package(
        headers,
        KERNEL_VERSION,
        section="kernel",
        files={f"/usr/src/{headers}/Makefile": File(b"# lab stub\n")},
        links={f"/usr/lib/modules/{kernel}/build": f"/usr/src/{headers}"},
        # /etc/kernel/header_postinst.d/dkms: headers that come last still get their modules built.
        postinst=f"! command -v dkms >/dev/null || dkms autoinstall -k {kernel}",
    )
    for tool in ("mokutil", "openssl"):
        yield Package(tool, "0.6.0-2")  # the files are the lab's own or Debian's; these satisfy a name
    for flavour in ("amd64", "cloud-amd64"):
        yield Package(f"linux-headers-{flavour}", KERNEL_VERSION, section="kernel", depends=(headers,))
