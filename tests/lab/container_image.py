"""A container image without a registry: a static busybox in a tar for `docker load` and `ctr images import`."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

BUSYBOX = Path("/bin/busybox")  # Debian's busybox-static
APPLETS = (
    "sh",
    "sleep",
    "cat",
    "echo",
    "ls",
    "id",
    "true",
    "env",
    "grep",
    "mount",
    "ps",
    "kill",
    "tr",
    "sed",
    "date",
    "cut",
    "printf",
    "test",
    "wc",
)
DIRECTORIES = ("bin", "dev", "etc", "proc", "sys", "tmp", "usr", "root", "run")


def write_image(
    target: Path,
    *tags: str,
    command: tuple[str, ...] = ("/bin/sh",),
    env: tuple[str, ...] = (),
    files: Mapping[str, Path] | None = None,
) -> Path:
    """An image archive with the given tags, such as "docker.io/library/busybox:lab"; files: by their path in it."""
    layer = _layer(files or {})
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {"Env": ["PATH=/bin:/usr/bin", *env], "Cmd": list(command)},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": "1970-01-01T00:00:00Z"}],
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    layer_name = f"{digest}/layer.tar"
    manifest = json.dumps([{"Config": config_name, "RepoTags": list(tags), "Layers": [layer_name]}]).encode()
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in ((config_name, config), (layer_name, layer), ("manifest.json", manifest)):
            _add_file(archive, name, content)
    return target


def _layer(files: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as layer:
        for name in DIRECTORIES:
            _add(layer, name, tarfile.DIRTYPE, 0o755)
        _add_file(layer, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in APPLETS:
            _add(layer, f"bin/{applet}", tarfile.SYMTYPE, 0o777, "busybox")
        _add_file(layer, "etc/passwd", b"root:x:0:0::/root:/bin/sh\n")
        _add_file(layer, "etc/group", b"root:x:0:\n")
        for path, file in files.items():
            _add_file(layer, path, file.read_bytes(), 0o755)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, kind: bytes, mode: int, link: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, mode, link
    archive.addfile(entry)


def _add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
