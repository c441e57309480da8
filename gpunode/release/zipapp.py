"""gpunode as one file: a zipapp that a host's bare python3 runs (PEP 441).

It holds the package, its templates and those of its dependencies that are pure Python; not paramiko, whose own
dependencies are compiled for one Python and one architecture, so it acts on the host it runs on. Two builds of the
same installation are the same bytes, whoever makes them and whenever.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from gpunode import resources
from gpunode.catalog.documents import document, in_archive, kept_text
from gpunode.catalog.documents import names as catalog_names
from gpunode.errors import UnsupportedHost
from gpunode.regex import regex

SHEBANG = b"#!/usr/bin/env python3\n"
LEAST_PYTHON = (3, 10)
# rich loads them for Markdown and coloured source code, neither of which gpunode shows: 1.2 MB of 3.
LEFT_OUT = ("paramiko", "markdown-it-py", "mdurl", "pygments")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can say
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # of a requirement: what stands before its extras and versions

# In the words of any Python, since it runs on whatever python3 a host has.
_MAIN = """import sys

if sys.version_info < {least}:
    sys.stderr.write(
        "gpunode: %s is Python %d.%d, and gpunode needs {words} or newer\\n"
        "  remedy: install one next to it (EL: dnf install python3.12), and start this file with it\\n"
        % ((sys.executable,) + sys.version_info[:2])
    )
    sys.exit(4)

from gpunode.cli.app import run

run()
"""


def zipapp() -> bytes:
    """The file. Raises UnsupportedHost where a dependency cannot be found as files, or is compiled and nothing else."""
    held = dict(sorted({**_own(), **_dependencies()}.items()))
    buffer = io.BytesIO(SHEBANG)
    buffer.seek(0, io.SEEK_END)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in held.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _own() -> dict[str, bytes]:
    """The package with its templates, the catalog's files as kept JSON next to them, and what is started."""
    if (made_of := resources.archive()) is not None:
        raise UnsupportedHost(
            "this gpunode is a zipapp itself",
            evidence=f"it runs from {made_of}, without paramiko and without its packages' records",
            remedy=f"copy {made_of}: another build of it would be the same",
        )
    package = Path(resources.PACKAGE)
    held = dict(_files(package, "gpunode"))
    if not any(name.startswith("gpunode/templates/") for name in held):
        held.update(_files(package.parent / "templates", "gpunode/templates"))
    for name in catalog_names():
        text = held[f"gpunode/catalog/{name}"]
        held[f"gpunode/{in_archive(name)}"] = kept_text(text, document(name)).encode()
    words = ".".join(map(str, LEAST_PYTHON))
    held["__main__.py"] = _MAIN.format(least=LEAST_PYTHON, words=words).encode()
    return held


def _files(directory: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(directory.rglob("*")):
        inside = path.relative_to(directory)
        if path.is_file() and "__pycache__" not in inside.parts:
            yield f"{name}/{inside.as_posix()}", path.read_bytes()


def _dependencies() -> dict[str, bytes]:
    held: dict[str, bytes] = {}
    for name, found in sorted(dependencies().items()):
        python = 0
        for path in found.files or ():
            if _belongs(path):
                held[path.as_posix()] = Path(str(found.locate_file(path))).read_bytes()
                python += path.suffix == ".py"
        if not python:
            raise UnsupportedHost(
                f"{name} cannot be packed",
                evidence=f"its installation ({found.locate_file('')}) lists no Python file of it",
                remedy="install gpunode with pip, pipx or uv, and make the zipapp from there",
            )
    return held


def _belongs(path: PurePosixPath) -> bool:
    """Python and what it reads next to it, with the licences; no compiled module, no program, no record of pip."""
    parts = path.parts
    if ".." in parts or path.is_absolute() or "__pycache__" in parts:
        return False
    if parts[0].endswith(".dist-info"):
        return "licens" in path.as_posix().lower() or path.name == "METADATA" or path.name.startswith("COPYING")
    return path.suffix not in (".so", ".pyd", ".pyc", ".pth", ".pyi", ".c", ".pxd", ".pyx")


def dependencies() -> Mapping[str, Distribution]:
    """What a zipapp of this installation holds besides gpunode, by name. Raises UnsupportedHost for a missing one."""
    found: dict[str, Distribution] = {}
    waiting = ["gpunode"]
    while waiting:
        for name in _required(_installed(waiting.pop())):
            if name not in found and name not in LEFT_OUT:
                found[name] = _installed(name)
                waiting.append(name)
    return found


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise UnsupportedHost(
            f"{name} is not installed as a package",
            evidence="a zipapp is made from the packages that pip has a record of",
            remedy="install gpunode with pip, pipx or uv, and make the zipapp from there",
        ) from error


def _required(package: Distribution) -> Iterator[str]:
    """Names in lower case; what only an extra or Windows asks for is left out."""
    for line in package.requires or ():
        requirement, _, marker = line.partition(";")
        if "extra ==" in marker or "win32" in marker or "Windows" in marker:
            continue
        if "python_version" in marker and not _for_some_host(marker):
            continue
        if name := _NAME.match(requirement.strip()):
            yield name.group().lower().replace("_", "-")


def _for_some_host(marker: str) -> bool:
    """Whether a host's Python, from LEAST_PYTHON on, can be one that the marker asks for: python_version < "3.11"."""
    limits = re.findall(r'python_version\s*<=?\s*["\'](\d+)\.(\d+)', marker)
    return all((int(major), int(minor)) > LEAST_PYTHON for major, minor in limits)
