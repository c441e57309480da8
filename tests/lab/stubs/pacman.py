"""Packages and a signed repository for pacman, written by hand: both are tar files of plain text."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.lab.authority import Signer
from tests.lab.shell import sh

from .deb import Package

BUILT = 1_780_000_000  # seconds since 1970; any


def build(package: Package, directory: Path, signer: Signer) -> Path:
    """NAME-VERSION-x86_64.pkg.tar.gz and its .sig."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{package.name}-{package.version}-x86_64.pkg.tar.gz"
    path.unlink(missing_ok=True)
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        _add(archive, ".PKGINFO", _description(package).encode())
        if script := _install_script(package):
            _add(archive, ".INSTALL", script.encode())
        for name, file in package.files.items():
            _add(archive, name.lstrip("/"), file.content, file.mode)
        for name, destination in package.links.items():
            _link(archive, name.lstrip("/"), destination)
    sign(path, signer)
    return path


def index(directory: Path, name: str, packages: Iterable[Package], signer: Signer) -> None:
    """(Re)make NAME.db of a directory and sign it."""
    database = directory / f"{name}.db"
    database.unlink(missing_ok=True)
    with tarfile.open(database, "w:gz", compresslevel=1) as archive:
        for package in packages:
            file = directory / f"{package.name}-{package.version}-x86_64.pkg.tar.gz"
            _add(archive, f"{package.name}-{package.version}/desc", _entry(package, file).encode())
    sign(database, signer)


def sign(path: Path, signer: Signer) -> None:
    """Beside the file, binary: libalpm reads the key's id from the packet."""
    signature = path.with_name(f"{path.name}.sig")
    signature.unlink(missing_ok=True)
    words = ("--batch", "--homedir", signer.home, "--digest-algo", "SHA512", "--detach-sign")
    sh("gpg", *words, "--output", signature, path)


def _description(package: Package) -> str:
    rows = [
        ("pkgname", package.name),
        ("pkgbase", package.name),
        ("pkgver", package.version),
        ("pkgdesc", f"lab stub of {package.name}"),
        ("builddate", str(BUILT)),
        ("packager", "gpunode lab <lab@example.invalid>"),
        ("size", str(_installed_bytes(package))),
        ("arch", "x86_64"),
        *(("depend", relation) for relation in package.depends),
        *(("conflict", name) for name in package.conflicts),
        *(("provides", name) for name in package.provides),
        *(("backup", path.lstrip("/")) for path in package.conffiles),
    ]
    return "".join(f"{key} = {value}\n" for key, value in rows)


def _installed_bytes(package: Package) -> int:
    return sum(len(file.content) for file in package.files.values())


def _entry(package: Package, file: Path) -> str:
    fields: dict[str, Sequence[str]] = {
        "FILENAME": (file.name,),
        "NAME": (package.name,),
        "VERSION": (package.version,),
        "DESC": (f"lab stub of {package.name}",),
        "CSIZE": (str(file.stat().st_size),),
        "ISIZE": (str(_installed_bytes(package)),),  # pacman compares the two
        "SHA256SUM": (hashlib.sha256(file.read_bytes()).hexdigest(),),
        "ARCH": ("x86_64",),
        "BUILDDATE": (str(BUILT),),
        "DEPENDS": package.depends,
        "CONFLICTS": package.conflicts,
        "PROVIDES": package.provides,
    }
    return "".join(f"%{key}%\n" + "\n".join(values) + "\n\n" for key, values in fields.items() if values)


def _install_script(package: Package) -> str:
    bodies = {"post_install": package.postinst, "post_upgrade": package.postinst, "pre_remove": package.prerm}
    return "".join(f"{name}() {{\n{body}\n}}\n" for name, body in bodies.items() if body)


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, BUILT
    entry.uname = entry.gname = "root"
    archive.addfile(entry, io.BytesIO(content))


def _link(archive: tarfile.TarFile, name: str, destination: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mtime = tarfile.SYMTYPE, destination, BUILT
    entry.uname = entry.gname = "root"
    archive.addfile(entry)
