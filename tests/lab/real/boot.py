"""Boots a kernel with nothing but busybox and some modules around it, under qemu without any acceleration."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.shell import sh

BOOT_S = 600.0  # 12 s on an idle processor
APPEND = "console=ttyS0 quiet panic=-1"
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev /sys
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
echo "KERNEL $(/bin/busybox uname -r)"
for module in $(/bin/busybox cat /order); do
  said=$(/bin/busybox insmod "/$module" 2>&1) && code=0 || code=$?
  echo "INSMOD $module $code $said"
done
/bin/busybox dmesg | /bin/busybox sed 's/^/DMESG /'
/bin/busybox poweroff -f
"""


@dataclass(frozen=True)
class Boot:
    kernel: str  # uname -r
    inserted: dict[str, tuple[int, str]]  # module -> insmod's exit code and words
    dmesg: str
    console: str  # all of it


def boot(kernel: Path, modules: Sequence[Path], work: Path) -> Boot:
    """Inserts the modules in their order, and powers off. Raises subprocess.TimeoutExpired when it does not end."""
    console = subprocess.run(
        _qemu(kernel, _initramfs(modules, work)),
        text=True,
        errors="replace",
        capture_output=True,
        timeout=BOOT_S,
        check=True,
        stdin=subprocess.DEVNULL,
    ).stdout.replace("\r", "")
    lines = re.findall(r"^INSMOD (\S+) (\d+) ?(.*)$", console, re.MULTILINE)
    release = re.search(r"^KERNEL (\S+)$", console, re.MULTILINE)
    return Boot(
        kernel=release.group(1) if release else "",
        inserted={name: (int(code), said) for name, code, said in lines},
        dmesg="\n".join(re.findall(r"^DMESG (.*)$", console, re.MULTILINE)),
        console=console,
    )


def _qemu(kernel: Path, initramfs: Path) -> list[str]:
    # TCG alone: where this machine is virtual itself, /dev/kvm may open and still not run a stock kernel.
    machine = ("-machine", "q35,accel=tcg", "-cpu", "max", "-m", "1024", "-nic", "none", "-no-reboot")
    console = ("-display", "none", "-monitor", "none", "-serial", "stdio")
    what = ("-kernel", str(kernel), "-initrd", str(initramfs), "-append", APPEND)
    return ["qemu-system-x86_64", *machine, *console, *what]


def _initramfs(modules: Sequence[Path], work: Path) -> Path:
    root = work / "initramfs"
    (root / "bin").mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), root / "bin/busybox")
    for module in modules:
        shutil.copy(module, root / module.name)
    (root / "order").write_text("".join(f"{module.name}\n" for module in modules))
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    image = work / "initramfs.cpio"
    sh("sh", "-c", 'cd "$1" && find . | busybox cpio -o -H newc >"$2"', "cpio", root, image)
    return image
