"""dracut's configuration, the images that it made, and what is in the one that was booted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpunode.facts.kernel import parse_blacklist
from gpunode.facts.wire import Sections
from gpunode.model.initramfs import DracutFacts, InitramfsImage


def parse_dracut(sections: Sections) -> DracutFacts | None:
    if "dracut" not in sections.commands:
        return None
    omitted, added = parse_drivers(sections.text("dracut"))
    inside = sections.text("initramfs") if "initramfs" in sections.commands else ""
    blacklisting = {
        path.lstrip("/")
        for path, _, line in (row.partition(":") for row in sections.text("blacklist").splitlines())
        if line.split()[:2] == ["blacklist", "nouveau"]
    }
    blocked = parse_blacklist("", sections.text("cmdline"))
    images = parse_images(sections.text("initramfs_images"), inside, blacklisting)
    return DracutFacts(omitted, added, blocked, tuple(images))


def parse_drivers(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """(omitted, added) by dracut.conf(5), found by the probe as PATH:LINE:

    /usr/lib/dracut/dracut.conf.d/99-nvidia.conf:omit_drivers+=" nvidia nvidia-drm nvidia-modeset nvidia-uvm "

    Files are read in the order of their names, wherever they are; one in /etc replaces its namesake in /usr/lib.
    """
    files: dict[str, list[str]] = {}
    for row in text.splitlines():
        path, _, line = row.partition(":")
        files.setdefault(path, []).append(line.strip())
    named = {path.rsplit("/", 1)[-1]: lines for path, lines in sorted(files.items(), key=_etc_last)}
    values: dict[str, list[str]] = {}
    for name in sorted(named, key=lambda name: (name != "dracut.conf", name)):
        for line in named[name]:
            _read_line(line, values)
    added = frozenset(values.get("add_drivers", [])) | frozenset(values.get("force_drivers", []))
    return frozenset(values.get("omit_drivers", [])), added


def _etc_last(item: tuple[str, list[str]]) -> tuple[bool, str]:
    return item[0].startswith("/etc/"), item[0]


def _read_line(line: str, values: dict[str, list[str]]) -> None:
    found = re.match(r"""(\w+)(\+?)=["']?([^"'#;]*)""", line)
    if found:
        names = found[3].replace("-", "_").split()
        values[found[1]] = [*values.get(found[1], []), *names] if found[2] else names


def parse_images(text: str, inside: str, blacklisting: Iterable[str]) -> Iterable[InitramfsImage]:
    """RELEASE|PATH|WHAT IS NEWER, and IMAGE:FILE for each module and modprobe.d file in the one that was looked into:

    /boot/initrd.img-6.12.107+deb13-amd64:usr/lib/modules/6.12.107+deb13-amd64/updates/dkms/nvidia.ko.xz
    """
    files: dict[str, set[str]] = {}
    for row in inside.splitlines():
        image, _, path = row.partition(":")
        files.setdefault(image, set()).add(path)
    wanted = set(blacklisting)
    for release, path, newer in (row.split("|") for row in text.splitlines() if row.count("|") == 2):
        found = files.get(path)
        modules = None if found is None else frozenset(map(_module, (f for f in found if "/modules/" in f)))
        yield InitramfsImage(release, path, frozenset(newer.split()), modules, bool(found and found & wanted))


def _module(path: str) -> str:
    return path.rsplit("/", 1)[-1].split(".", 1)[0].replace("-", "_")
