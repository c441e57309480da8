"""What the resolvers of bundles share: scripts that run here, and files that are copied and described."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from pathlib import Path

from gpunode import resources
from gpunode.model.bundle import BundledFile
from gpunode.transport.base import Completed, Transport

KEY_S, FETCH_S = 180, 3600  # a driver and its dependencies are 500 MB, and mirrors can be slow
_CHUNK = 1 << 20


def run_script(transport: Transport, script: str, timeout_s: float, *arguments: str) -> Completed:
    return transport.run(f"set -- {shlex.join(arguments)}\n{resources.script(script)}", timeout_s=timeout_s)


def last_words(done: Completed) -> str:
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-8:])[:2000] or f"exit code {done.code}"


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def described(path: Path) -> BundledFile:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return BundledFile(digest.hexdigest(), size)
