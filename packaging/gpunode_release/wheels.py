"""The libraries that a release brings along: wheels by name and hash, fetched once, unpacked as files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import ZipFile

from gpunode_release.faults import ReleaseError

_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9._-]+\.whl)")
_CPYTHON = re.compile(r"cp3(\d+)")
_LEAST = "3.10"
# Of a wheel's record only what the licences ask for, and what says which version it is.
_RECORD = ("METADATA",)
_COMPILED = (".so", ".c", ".pyi")  # and what only compilers and type checkers read


class Wheel(NamedTuple):
    """PEP 427: typer-0.20.1-py3-none-any.whl."""

    file: str
    sha256: str

    @property
    def name(self) -> str:
        return self.file.split("-")[0].lower().replace("_", "-")

    @property
    def version(self) -> str:
        return self.file.split("-")[1]


def locked(path: Path) -> tuple[Wheel, ...]:
    """The wheels that a lock file names. Raises ReleaseError for a line that is none."""
    wheels = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            found = _LINE.fullmatch(line)
            if not found:
                raise ReleaseError(f"{path}:{number}: no line of sha256sum about a wheel")
            wheels.append(Wheel(found[2], found[1]))
    return tuple(wheels)


def fetch(wheels: tuple[Wheel, ...], cache: Path) -> tuple[Path, ...]:
    """The files, from `cache`, or by pip from where it finds packages. Raises ReleaseError for another hash."""
    cache.mkdir(parents=True, exist_ok=True)
    for wheel in wheels:
        if not (cache / wheel.file).is_file():
            _download(wheel, cache)
        if (found := sha256((cache / wheel.file).read_bytes()).hexdigest()) != wheel.sha256:
            raise ReleaseError(f"{cache / wheel.file} has the SHA-256 {found}, not {wheel.sha256}; remove it")
    return tuple(cache / wheel.file for wheel in wheels)


def _download(wheel: Wheel, cache: Path) -> None:
    python, abi, platforms = wheel.file.removesuffix(".whl").split("-")[-3:]
    minor = _CPYTHON.fullmatch(python)
    version = f"3.{minor[1]}" if minor and abi == python else _LEAST
    words = [word for platform in platforms.split(".") for word in ("--platform", platform)]
    told = subprocess.run(
        (
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--only-binary=:all:", "--implementation", "cp" if minor else "py", "--abi", abi, *words),
            *("--python-version", version, "--dest", str(cache), f"{wheel.name}=={wheel.version}"),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode or not (cache / wheel.file).is_file():
        last = (told.stderr.strip().splitlines() or ["it is not there afterwards"])[-1]
        raise ReleaseError(f"{wheel.file} cannot be fetched by pip: {last}")


def unpack(wheels: tuple[Path, ...], into: Path, *, compiled: bool) -> None:
    """The wheels as files; `compiled`: with what is no Python. Raises ReleaseError where two would write one file."""
    for wheel in wheels:
        with ZipFile(wheel) as archive:
            for name in _members(archive, compiled):
                path, content = into / name, archive.read(name) if compiled else _as_module(archive.read(name))
                if path.exists() and path.read_bytes() != content:
                    raise ReleaseError(f"{wheel.name}: another wheel has another {name}")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


def _as_module(content: bytes) -> bytes:
    """Without the first line that would make a program of it: nothing of a library is started, and lints ask."""
    return b"#" + content[content.index(b"\n") :] if content.startswith(b"#!") else content


def _members(archive: ZipFile, compiled: bool) -> Iterator[str]:
    for name in archive.namelist():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or name.endswith("/"):
            continue
        top = path.parts[0]
        if top.endswith(".data") or (top.endswith(".dist-info") and not _is_kept(path)):
            continue
        if compiled or path.suffix not in _COMPILED:
            yield name


def _is_kept(path: PurePosixPath) -> bool:
    return path.name in _RECORD or "licens" in path.as_posix().lower() or path.name.startswith(("COPYING", "NOTICE"))
