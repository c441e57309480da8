"""RELEASE.json inside the package: what a release consists of, file by file. `scripts/release` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from gpunode.foreign import NotRead, read_json
from gpunode.regex import regex
from gpunode.values import dataclass

NAME = "RELEASE.json"
SCHEMA = "gpunode.release/1"
MOST_FILES = 20_000
_LARGEST_FILE_BYTES = 64 << 20
_SHA256 = regex(r"[0-9a-f]{64}")
_COMMIT = regex(r"[0-9a-f]{40}")
_WORD = regex(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")


class Content(NamedTuple):
    size_bytes: int
    sha256: str  # 64 lowercase hex digits


@dataclass(frozen=True)
class Release:
    version: str  # "0.1.0"
    commit: str  # of the source, 40 hex digits
    committed_at_s: int  # since the epoch
    artifact: str  # "wheel", "deb", "rpm", "zipapp" or "controller"
    whole: bool  # whether nothing else lies beside the package: its libraries are among the files, too
    files: Mapping[str, Content]  # path below the directory that holds the package: "gpunode/cli/app.py"


def release_text(release: Release) -> str:
    """The same release is the same text."""
    files = {path: [content.size_bytes, content.sha256] for path, content in sorted(release.files.items())}
    head = {name: getattr(release, name) for name in ("version", "commit", "committed_at_s", "artifact", "whole")}
    lines = ",\n".join(f"    {json.dumps(path)}: {json.dumps(content)}" for path, content in files.items())
    fields = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items())
    return f'{{\n  "schema": "{SCHEMA}",\n{fields}  "files": {{\n{lines}\n  }}\n}}\n'


def read_release(text: str) -> Release:
    """The release that `text` describes. Raises NotRead for anything that `release_text` does not write."""
    found = read_json(text, unique=True)
    fault = next(_faults(found), None)
    if fault:
        raise NotRead(fault)
    return Release(
        version=found["version"],
        commit=found["commit"],
        committed_at_s=found["committed_at_s"],
        artifact=found["artifact"],
        whole=found["whole"],
        files={path: Content(*content) for path, content in found["files"].items()},
    )


def _faults(found: Any) -> Iterator[str]:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        yield f"it is no {SCHEMA}"
        return
    files = found.get("files")
    rules = {
        "version": _is_text(found.get("version"), _WORD),
        "commit": _is_text(found.get("commit"), _COMMIT),
        "committed_at_s": type(found.get("committed_at_s")) is int and 0 <= found["committed_at_s"] < 1 << 40,
        "artifact": _is_text(found.get("artifact"), _WORD),
        "whole": isinstance(found.get("whole"), bool),
        "files": isinstance(files, dict) and 0 < len(files) <= MOST_FILES,
    }
    yield from (f"{name} is not what a release has there" for name, right in rules.items() if not right)
    if isinstance(files, dict):
        yield from (
            f"{path!r} is no file of a release" for path, content in files.items() if not _is_file(path, content)
        )


def _is_text(value: object, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_file(path: str, content: object) -> bool:
    """A path that leads nowhere else, with a size and a hash."""
    if not isinstance(content, list) or len(content) != 2:
        return False
    size, digest = content
    parts = PurePosixPath(path).parts
    inside = path == "/".join(parts) != "" and len(path) < 1024 and "\0" not in path and not {"..", "/"} & set(parts)
    return inside and type(size) is int and 0 <= size <= _LARGEST_FILE_BYTES and _is_text(digest, _SHA256)
