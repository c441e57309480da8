"""A .deb from a description."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.shell import sh


@dataclass(frozen=True)
class File:
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    depends: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    files: dict[str, File] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)  # path: what the symlink holds
    postinst: str = ""  # runs on `configure`
    prerm: str = ""
    postrm: str = ""
    architecture: str = "amd64"
    section: str = "admin"
    conffiles: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return f"{self.name}_{self.version}_{self.architecture}.deb"


def build(package: Package, directory: Path, scratch: Path) -> Path:
    """Write the package into a directory; `scratch` is emptied and used."""
    shutil.rmtree(scratch, ignore_errors=True)
    control = scratch / "DEBIAN"
    control.mkdir(parents=True)
    for path, file in package.files.items():
        target = scratch / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    for path, destination in package.links.items():
        link = scratch / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(destination)
    (control / "control").write_text(_control(package))
    if package.conffiles:
        (control / "conffiles").write_text("".join(f"{path}\n" for path in package.conffiles))
    for name, body in _scripts(package).items():
        (control / name).write_text(body)
        (control / name).chmod(0o755)
    output = directory / package.file_name
    sh("dpkg-deb", "-Znone", "--root-owner-group", "-b", scratch, output)
    return output


def _control(package: Package) -> str:
    fields = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": package.architecture,
        "Maintainer": "gpunode lab <lab@example.invalid>",
        "Section": package.section,
        "Priority": "optional",
        "Depends": ", ".join(package.depends),
        "Provides": ", ".join(package.provides),
        "Conflicts": ", ".join(package.conflicts),
        "Replaces": ", ".join(package.conflicts),
        "Description": f"lab stub of {package.name}",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def _scripts(package: Package) -> dict[str, str]:
    scripts = {}
    if package.postinst:
        scripts["postinst"] = f'#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n{package.postinst}\n'
    if package.prerm:
        scripts["prerm"] = f"#!/bin/sh\nset -e\n{package.prerm}\n"
    if package.postrm:
        scripts["postrm"] = f"#!/bin/sh\nset -e\n{package.postrm}\n"
    return scripts
