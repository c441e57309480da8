"""The running kernel, the installed ones, and what keeps modules away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gpunode.facts.release import key_values
from gpunode.foreign import whole_number
from gpunode.model.facts import KernelTree
from gpunode.model.system import ModuleOption

INITRAMFS_TOOLS = ("update-initramfs", "dracut", "mkinitcpio")


def parse_trees(text: str, modules: str) -> tuple[KernelTree, ...]:
    """`kernel_trees` (release|bootable|headers) joined with the paths that `nvidia_ko` found:

    6.8.0-52-generic|1|0            /lib/modules/6.8.0-52-generic/updates/dkms/nvidia.ko.zst
    """
    found: dict[str, str] = {}
    for path in modules.split():
        parts = path.split("/lib/modules/", 1)[-1].strip("/").split("/")
        if re.match(r"nvidia(-current(-open)?|-tesla-\d+)?\.ko", parts[-1]):
            found.setdefault(parts[0], path.replace("//", "/"))
    rows = (line.split("|") for line in text.splitlines() if line.count("|") == 2)
    return tuple(KernelTree(name, boot == "1", headers == "1", found.get(name)) for name, boot, headers in rows)


def parse_blacklist(text: str, cmdline: str) -> frozenset[str]:
    """Modules named by modprobe.d(5) lines, found by the probe as PATH:LINE, and by the kernel command line:

    /etc/modprobe.d/blacklist-nouveau.conf:blacklist nouveau
    /etc/modprobe.d/nova.conf:install nova_core /bin/false
    """
    blacklisted = {words[1] for words in _lines(text) if words[:1] == ["blacklist"] and len(words) > 1}
    for word in cmdline.split():
        key, _, names = word.partition("=")
        if key in ("modprobe.blacklist", "rd.driver.blacklist"):
            blacklisted.update(names.split(","))
    return _named(blacklisted) | parse_barred(text, cmdline)


def parse_barred(text: str, cmdline: str) -> frozenset[str]:
    """Of the same those that modprobe does not load by their names either: `install X` with a command that loads
    nothing, `alias X off`, and module_blacklist= (kernel-parameters), which the kernel itself applies.
    """
    barred = {words[1] for words in _lines(text) if _bars(words)}
    for word in cmdline.split():
        key, _, names = word.partition("=")
        if key == "module_blacklist":
            barred.update(names.split(","))
    return _named(barred)


def _lines(text: str) -> Iterator[list[str]]:
    return (line.partition(":")[2].split() for line in text.splitlines())


def _named(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.replace("-", "_") for name in names if name)


def parse_options(text: str) -> tuple[ModuleOption, ...]:
    """NVreg options of the same section's `options nvidia NVreg_DeviceFileMode=0660`, as modprobe takes them.

    Of files with one name that of the first directory is in force (modprobe.d(5)); they are read in the order of their
    names, and of a key that is set twice the last counts.
    """
    lines: dict[str, list[tuple[str, str]]] = {}  # name of a file -> (path, line)
    for path, _, line in (row.partition(":") for row in text.splitlines()):
        name = path.rpartition("/")[2]
        if not lines.get(name) or lines[name][0][0] == path:
            lines.setdefault(name, []).append((path, line))
    found: dict[str, ModuleOption] = {}
    for name in sorted(lines):
        for path, words in ((path, line.split()) for path, line in lines[name]):
            if words[:1] == ["options"] and "".join(words[1:2]).startswith("nvidia"):
                for key, _, value in (w.removeprefix("NVreg_").partition("=") for w in words[2:] if w[:6] == "NVreg_"):
                    found[key] = ModuleOption(path, key, value.strip('"'))
    return tuple(found.values())


def _bars(words: list[str]) -> bool:
    if words[:1] == ["alias"]:
        return words[2:3] == ["off"]
    return words[:1] == ["install"] and len(words) > 2 and words[2].rsplit("/", 1)[-1] in ("false", "true", ":")


def parse_next_boot(text: str, trees: Iterable[KernelTree]) -> str | None:
    """The release that GRUB will start, where it is known; None when not.

    EL keeps it in grubenv as MACHINE_ID-RELEASE, which is GRUB's default where GRUB_DEFAULT is "saved" (00_header.in of
    GRUB; GRUB_DEFAULT is unset on hosts whose entries are files of the Boot Loader Specification). Debian and Ubuntu
    start the newest when it is 0 or unset. What grub-reboot chose for one boot goes first, and the last GRUB_DEFAULT
    counts:

    saved_entry=3f9a...-5.14.0-503.14.1.el9_5.x86_64
    next_entry=
    GRUB_DEFAULT=0
    """
    value = {key: word.strip("\"'") for key, word in key_values("\n".join(reversed(text.splitlines()))).items()}
    bootable = [tree.release for tree in trees if tree.bootable]
    chosen, default, saved = (value.get(key, "") for key in ("next_entry", "GRUB_DEFAULT", "saved_entry"))
    is_of_bls = bool(saved) and not set(" >") & set(saved)  # titles of menus have blanks, and ">" between two
    if chosen or default == "saved" or (not default and is_of_bls):
        entry = chosen or saved
        return next((release for release in bootable if entry.endswith(release)), None) if entry else None
    if not bootable or default not in ("", "0"):
        return None
    return max(bootable, key=version_key)


def version_key(release: str) -> list[tuple[int, str]]:
    """Sorts kernel releases as GRUB does: runs of digits as numbers."""
    return [
        (-1, part) if (number := whole_number(part)) is None else (number, "")
        for part in re.split(r"([0-9]+)|[^0-9A-Za-z]", release)
        if part
    ]


def parse_compiler(text: str) -> int | None:
    """Major version of the gcc that built the running kernel, from /proc/version (proc_version(5)):

    Linux version 6.8.0-51-generic (buildd@x) (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0, ...
    """
    found = re.search(r"gcc[\w.-]* (?:\(.*?\) )?([0-9]{1,4})\.[0-9]", text[:4096])
    return int(found[1]) if found else None


def initramfs_tool(tools: str) -> str | None:
    """The first initramfs generator among the paths in the `tools` section."""
    names = {path.rsplit("/", 1)[-1] for path in tools.split()}
    return next((tool for tool in INITRAMFS_TOOLS if tool in names), None)
