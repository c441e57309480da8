"""One file of containerd's without its daemon: which schema it is in, which daemon it suits, and what it imports."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpunode.editing import toml_text
from gpunode.engines.base import Alone, Disk
from gpunode.engines.containerd.cri_section import V3
from gpunode.engines.containerd.edit import drop_in_path
from gpunode.engines.containerd.live import sets
from gpunode.errors import UsageError
from gpunode.model.files import FileFacts

# A daemon that reads each schema of containerd's file, for when it is not known which one it is for. Version 2 is read
# by every daemon from 1.3 on; 1.7 is the one whose wishes (runc written out) harm none of the others.
SUITS = {1: "1.7.0", 2: "1.7.0", 3: "2.1.0", 4: "2.3.0"}


def read(disk: Disk, asked: Alone, schema: int | None, *, is_default: bool) -> Alone:
    """`is_default`: the file is the one that a daemon reads by default."""
    if schema is not None and schema not in SUITS:
        raise UsageError(
            f"--config-schema {schema} is not a schema of containerd's file",
            evidence=f"the schemas are {', '.join(map(str, SUITS))}",
            remedy="containerd 1.x reads 2, 2.0 reads 3, 2.3 reads 4; all of them read 2",
        )
    file, want = _in_schema(asked.main, schema), asked.want
    if want.drop_in is None and (asked.daemon is None or not is_default):
        # Every daemon reads its main file in the same way; drop-ins are merged by some versions only.
        want = replace(want, drop_in="none")
    for directory in sorted({posixpath.dirname(path) for path in (file.path, drop_in_path(file.path, want))}):
        disk.named(f"{directory}/*.toml")
    imports = tuple(_imports(disk, file.path, file))
    if asked.daemon is None:
        _refuse_ambiguous((file, *map(disk.read, imports)))
    return asked._replace(main=file, want=want, daemon=asked.daemon or _assumed(file), imports=imports)


def _refuse_ambiguous(files: Iterable[FileFacts]) -> None:
    """Raises UsageError for runtimes under version 3's name in an older file: 2.x reads them there, 1.x does not."""
    for file in files:
        if _schema(file) < 3 and sets(toml_text.read(file.path, file.text or ""), V3):
            raise UsageError(
                f"{file.path} is in version {_schema(file)} and sets runtimes under plugins.{V3!r}",
                evidence="containerd 1.x ignores that name in it, 2.x reads it",
                remedy="say which daemon the file is for: --daemon-version",
            )


def _in_schema(file: FileFacts, schema: int | None) -> FileFacts:
    """The file; a new one begins with the schema that was asked for."""
    if schema is None or file.unread:
        return file
    if not (file.text or "").strip():
        return replace(file, text=f"version = {schema}\n")
    if _schema(file) == schema:
        return file
    raise UsageError(
        f"{file.path} is in schema {_schema(file)}, and --config-schema {schema} is for a new file",
        evidence="its settings have other names in another schema",
        remedy="leave --config-schema out; containerd config migrate converts a file to the newest",
    )


def _assumed(file: FileFacts) -> str:
    return SUITS.get(_schema(file), SUITS[4]) if (file.text or "").strip() else SUITS[2]


def _schema(file: FileFacts) -> int:
    version = toml_text.read(file.path, file.text or "").get("version", 1)
    return version if isinstance(version, int) and version > 0 else 1


def _imports(disk: Disk, path: str, file: FileFacts) -> Iterator[str]:
    """The files that a containerd file imports, those that they import, and so on; each once."""
    seen, waiting = {path}, [file]
    while waiting:
        one = waiting.pop(0)
        for name in _imported(disk, one):
            if name not in seen:
                seen.add(name)
                waiting.append(disk.read(name))
                yield name


def _imported(disk: Disk, file: FileFacts) -> Iterator[str]:
    patterns = toml_text.read(file.path, file.text).get("imports", []) if file.text is not None else []
    for pattern in patterns if isinstance(patterns, list) else []:
        if isinstance(pattern, str):
            yield from disk.named(posixpath.normpath(posixpath.join(posixpath.dirname(file.path), pattern)))
