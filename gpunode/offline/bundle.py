"""A support bundle as one tar.gz: whose names are gpunode's own, whose texts are masked, and whose MANIFEST lists all.

What it is made of comes from hosts, so nothing of them decides on a name, a mode or a size in it.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Sequence

from gpunode.masking import masked
from gpunode.regex import regex
from gpunode.render.clean import clean, clean_line
from gpunode.values import dataclass

ROOT = "gpunode-bundle"
ENTRY_BYTES = 8 << 20  # of one file: the largest is a recording, 4 MiB at most
WHOLE_BYTES = 1 << 30  # of all together, unpacked
_NAME = regex(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
HEAD = """gpunode support bundle, made {at} by gpunode {version}

Secrets are masked where their name or form gives them away. Names of hosts, users, units, images and paths, addresses
and serial numbers are in it, and what programs wrote into their logs. Read it before you send it.
"""


@dataclass(frozen=True)
class Entry:
    """One file of a host."""

    name: str
    source: str  # where it comes from, for the MANIFEST
    text: str
    exact: bool = False  # masked already, and to be read by gpunode again: not a byte is changed


@dataclass(frozen=True)
class HostFiles:
    """What a bundle has of one host, and what it has not."""

    target: str  # as the user named it
    entries: tuple[Entry, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # a name, and why


def bundle(hosts: Sequence[HostFiles], *, at: str, at_s: int, version: str) -> bytes:
    """The archive's bytes; `at_s`: the time of each file in it, in seconds since the epoch."""
    files: list[tuple[str, str, bytes]] = []
    left: list[tuple[str, str]] = []
    room = WHOLE_BYTES
    for number, host in enumerate(hosts, 1):
        directory = f"{number:02d}-{_slug(host.target)}"
        left += [(f"{directory}/{name}", why) for name, why in host.left_out]
        for entry in host.entries:
            name, data = f"{directory}/{entry.name}", _bytes(entry)
            if not _NAME.fullmatch(entry.name) or len(data) > min(ENTRY_BYTES, room):
                left.append((name, f"{len(data)} bytes are more than a bundle takes"))
                continue
            room -= len(data)
            files.append((name, entry.source, data))
    manifest = _manifest(hosts, files, left, at=at, version=version).encode("utf-8", "backslashreplace")
    return _tar([("MANIFEST", "", manifest), *files], at_s)


def _slug(target: str) -> str:
    """A name of a host as a part of a path: letters, digits, dots and hyphens."""
    return re.sub(r"[^a-z0-9.-]+", "-", target.lower()).strip(".-")[:60] or "host"


def _bytes(entry: Entry) -> bytes:
    text = entry.text if entry.exact else clean(masked(entry.text, "lines"))
    return text.encode("utf-8", "surrogateescape" if entry.exact else "backslashreplace")


def _manifest(
    hosts: Sequence[HostFiles],
    files: Sequence[tuple[str, str, bytes]],
    left: Sequence[tuple[str, str]],
    *,
    at: str,
    version: str,
) -> str:
    lines = [f"  {number:02d}-{_slug(host.target)}: {host.target}" for number, host in enumerate(hosts, 1)]
    lines += ["Files (bytes, name, what it is):"]
    lines += [f"  {len(data):>9}  {name}  {source}" for name, source, data in files]
    lines += ["Left out:", *(f"  {name}: {why}" for name, why in left)] if left else []
    said = [clean_line(masked(line, "lines")) for line in ("Hosts:", *lines)]
    return "\n".join((HEAD.format(at=at, version=version), *said, ""))


def _tar(files: Sequence[tuple[str, str, bytes]], at_s: int) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=at_s) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, _, data in files:
            info = tarfile.TarInfo(f"{ROOT}/{name}")
            info.size, info.mode, info.mtime = len(data), 0o600, at_s
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()
