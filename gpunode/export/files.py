"""What an export is made of: files by name, and gpunode as one of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property

from gpunode.values import dataclass

MANIFEST = "gpunode-export.json"
ZIPAPP = "gpunode.pyz"


@dataclass(frozen=True)
class ExportedFile:
    """A file of an export. `name` is relative, with / between its parts; `mode` is 0o644 or 0o755."""

    name: str
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class Carried:
    """gpunode as a zipapp, which a host's bare python3 runs, and how it comes onto the host.

    Neither url nor path: the export holds its bytes. Whichever it is, a host runs nothing whose SHA-256 is another.
    """

    zipapp: bytes
    url: str | None = None
    path: str | None = None

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.zipapp).hexdigest()

    @property
    def is_inside(self) -> bool:
        return self.url is None and self.path is None


@dataclass(frozen=True)
class Request:
    """What is exported. `spec`: a spec file's text; `words`: options of setup beyond it."""

    spec: str
    words: tuple[str, ...]
    carried: Carried
    version: str

    @cached_property
    def key(self) -> str:
        """16 hex digits; another spec, another gpunode or other words have another key."""
        parts = json.dumps([self.spec, self.words, self.carried.sha256])
        return hashlib.sha256(parts.encode()).hexdigest()[:16]


def text_file(name: str, text: str, mode: int = 0o644) -> ExportedFile:
    return ExportedFile(name, text.encode(), mode)


def with_manifest(target: str, version: str, files: Sequence[ExportedFile]) -> tuple[ExportedFile, ...]:
    """The files and what they are, by which gpunode knows them again when it writes a newer export over them."""
    listed = {one.name: {"sha256": hashlib.sha256(one.data).hexdigest(), "mode": f"{one.mode:o}"} for one in files}
    content = {"schema": "gpunode.export/1", "target": target, "gpunode": version, "files": listed}
    return (*files, text_file(MANIFEST, json.dumps(content, indent=2) + "\n"))
