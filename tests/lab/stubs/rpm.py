"""Packages for rpm, many from one spec: rpmbuild's start is what costs time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.lab.authority import Signer
from tests.lab.shell import sh

from .deb import Package

NOTHING_AUTOMATIC = (
    ("debug_package", "%{nil}"),
    ("__os_install_post", "%{nil}"),
    ("_build_id_links", "none"),
    ("_binary_payload", "w0.gzdio"),
)


def build(packages: Sequence[Package], directory: Path, scratch: Path, epoch: int | None = None) -> list[Path]:
    """Write the packages, whose relations are in rpm's words, into a directory. No name may come twice.

    One rpmbuild each for those that bring different files of the same path.
    """
    directory.mkdir(parents=True, exist_ok=True)
    before = set(directory.glob("*.rpm"))
    for batch in _batches(packages):
        _build(batch, directory, scratch, epoch)
    return sorted(set(directory.glob("*.rpm")) - before)


def _batches(packages: Sequence[Package]) -> list[list[Package]]:
    batches: list[list[Package]] = []
    for package in packages:
        fits = (b for b in batches if not any(p.files.keys() & package.files.keys() for p in b))
        found = next(fits, None)
        if found is None:
            batches.append([package])
        else:
            found.append(package)
    return batches


def _build(packages: Sequence[Package], directory: Path, scratch: Path, epoch: int | None) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    tree = scratch / "tree"
    for package in packages:
        _lay_out(package, tree)
    spec = scratch / "stubs.spec"
    spec.write_text(_spec(packages, tree, epoch))
    defines = [
        ("_topdir", str(scratch / "top")),
        ("_rpmdir", str(directory)),
        ("_rpmfilename", "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm"),
        *NOTHING_AUTOMATIC,
    ]
    words = [word for name, value in defines for word in ("--define", f"{name} {value}")]
    sh("rpmbuild", "-bb", "--quiet", *words, "--target", "x86_64", spec)


def sign(signer: Signer, files: Sequence[Path]) -> None:
    defines = (("_gpg_name", signer.fingerprint), ("_gpg_path", str(signer.home)), ("__gpg", "/usr/bin/gpg"))
    words = [word for name, value in defines for word in ("--define", f"{name} {value}")]
    sh("rpmsign", *words, "--addsign", *files)


def index(directory: Path, signer: Signer, modules: str = "") -> None:
    """(Re)make the repodata of a directory, with module streams where `modules` is their YAML, and sign repomd.xml."""
    shutil.rmtree(directory / "repodata", ignore_errors=True)
    sh("createrepo_c", "--quiet", "--no-database", directory)
    if modules:
        text = directory / "modules.yaml"
        text.write_text(modules)
        sh("modifyrepo_c", "--mdtype=modules", text, directory / "repodata")
        text.unlink()
    sign_index(directory, signer)


def sign_index(directory: Path, signer: Signer) -> None:
    repomd = directory / "repodata" / "repomd.xml"
    signer.detach_sign(repomd, repomd.with_name("repomd.xml.asc"))
    repomd.with_name("repomd.xml.key").unlink(missing_ok=True)
    repomd.with_name("repomd.xml.key").write_text(signer.armored())


def _lay_out(package: Package, tree: Path) -> None:
    for path, file in package.files.items():
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    for path, destination in package.links.items():
        link = tree / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(destination)


def _spec(packages: Sequence[Package], tree: Path, epoch: int | None) -> str:
    version, _, release = packages[0].version.partition("-")
    head = f"Name: stubs\nVersion: {version}\nRelease: {release}\nSummary: lab stubs\nLicense: MIT\n%description\n"
    install = f"%install\nmkdir -p %{{buildroot}}\ncp -a {tree}/. %{{buildroot}}/\n" if tree.exists() else ""
    return head + "".join(_section(p, epoch) for p in packages) + install + "".join(map(_contents, packages))


def _section(package: Package, epoch: int | None) -> str:
    version, _, release = package.version.partition("-")
    rows = [
        f"%package -n {package.name}",
        f"Summary: lab stub of {package.name}",
        f"Version: {version}",
        f"Release: {release}",
        *([f"Epoch: {epoch}"] if epoch is not None else []),
        "AutoReqProv: no",
        *(f"Requires: {relation}" for relation in package.depends),
        *(f"Provides: {relation}" for relation in package.provides),
        *(f"Conflicts: {relation}" for relation in package.conflicts),
        f"%description -n {package.name}\nlab stub\n",
    ]
    return "\n".join(rows)


def _contents(package: Package) -> str:
    rows = [f"%files -n {package.name}"]
    rows += [
        ("%config(noreplace) " if p in package.conffiles else "") + _entry(p, f.mode) for p, f in package.files.items()
    ]
    rows += list(package.links)
    if package.postinst:
        rows += [f"%post -n {package.name}", package.postinst]
    if package.prerm:
        rows += [f"%preun -n {package.name}", package.prerm]
    if package.postrm:
        rows += [f"%postun -n {package.name}", package.postrm]
    return "\n".join(rows) + "\n"


def _entry(path: str, mode: int) -> str:
    return f"%attr({mode:o}, root, root) {path}"
