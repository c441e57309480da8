"""A release from its commit to its files, in the order in which one needs the other."""

from __future__ import annotations

import re
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from io import BytesIO
from pathlib import Path

from gpunode_release import tools
from gpunode_release.controller import NAME as CONTROLLER
from gpunode_release.controller import build_controller
from gpunode_release.deb import build_deb
from gpunode_release.faults import ReleaseError
from gpunode_release.provenance import provenance_text
from gpunode_release.rpm import build_rpm
from gpunode_release.sbom import sbom_text
from gpunode_release.source import Source, export
from gpunode_release.texts import Texts, texts_by
from gpunode_release.tree import LIB, add_host_files, add_package, settle, write, write_manifest, zipped
from gpunode_release.wheels import Wheel, fetch, locked, unpack
from gpunode_release.zipapp import FILE as ZIPAPP
from gpunode_release.zipapp import build_zipapp

NEEDS = ("git", "dpkg-deb", "rpmbuild")
_TOOLS = ("dpkg-deb", "rpmbuild")
_VERSION = re.compile(r'^__version__ = "([0-9A-Za-z.]+)"$', re.M)


@dataclass(frozen=True)
class Build:
    source: Source
    cache: Path  # of wheels
    work: Path  # an empty directory, whose content nobody needs afterwards
    into: Path  # an empty directory, for the result
    say: Callable[[str], None]

    def release(self) -> tuple[Path, ...]:
        """Every file of the release. Raises ReleaseError."""
        if lacking := tools.missing(*NEEDS):
            raise ReleaseError(f"not installed: {', '.join(lacking)} (Debian: apt-get install git dpkg-dev rpm)")
        if " " in str(self.work):
            raise ReleaseError(f"rpmbuild takes no path with a space in it, as {self.work} has: set TMPDIR to another")
        tree = export(self.source, self.work / "source")
        version = _version(tree)
        host, controller = (locked(tree / "packaging/wheels" / f"{name}.sha256") for name in ("host", "controller"))
        self.say(f"gpunode {version}, commit {self.source.commit}")
        host_files, controller_files = fetch(host, self.cache), fetch(controller, self.cache)
        self._python_packages(tree, version)
        texts = self._texts(tree, version, host_files)
        held: dict[str, tuple[Path, ...]] = {}
        for kind, build in (("deb", build_deb), ("rpm", build_rpm)):
            made = build(
                self._below_root(tree, version, kind, host_files, texts),
                tree,
                self.source,
                version,
                self.work,
                self.into,
            )
            held[made.name] = host_files
            self.say(made.name)
        own = self.into / f"gpunode-{version}-py3-none-any.whl"
        held[build_zipapp((own, *host_files), self.source, version, self.work, self.into).name] = host_files
        self.say(ZIPAPP)
        held[self._controller(tree, version, controller_files).name] = controller_files
        self._hand_out(texts, version)
        self._about(version, held, (*host, *controller))
        return tuple(sorted(self.into.iterdir()))

    def _python_packages(self, tree: Path, version: str) -> None:
        """The sdist, and the wheel of the same files, by hatchling; templates/ lies elsewhere in both."""
        lib = self.work / "manifest"
        add_package(tree, lib)
        write_manifest(lib, self.source, version, "wheel", whole=False)
        (tree / "gpunode/RELEASE.json").write_bytes((lib / "gpunode/RELEASE.json").read_bytes())
        for target in ("sdist", "wheel"):
            words = ("-m", "hatchling", "build", "-t", target, "-d", str(self.into))
            tools.run(self.source, sys.executable, *words, cwd=tree)
        (tree / "gpunode/RELEASE.json").unlink()
        self.say(f"gpunode-{version}-py3-none-any.whl, gpunode-{version}.tar.gz")

    def _site(self, tree: Path, version: str, artifact: str, wheels: tuple[Path, ...]) -> Path:
        """A directory of packages: gpunode, and what these wheels hold."""
        site = self.work / f"site-{artifact}"
        unpack(wheels, site, compiled=artifact == "controller")
        add_package(tree, site)
        write_manifest(site, self.source, version, artifact, whole=True)
        return site

    def _below_root(self, tree: Path, version: str, package: str, wheels: tuple[Path, ...], texts: Texts) -> Path:
        root = self.work / f"root-{package}"
        (root / LIB).mkdir(parents=True)
        self._site(tree, version, package, wheels).rename(root / LIB / "lib")
        add_host_files(root, tree, texts, package)
        return root

    def _controller(self, tree: Path, version: str, wheels: tuple[Path, ...]) -> Path:
        made = build_controller(self._site(tree, version, "controller", wheels), self.source, self.work, self.into)
        self.say(CONTROLLER)
        return made

    def _texts(self, tree: Path, version: str, wheels: tuple[Path, ...]) -> Texts:
        return texts_by(self._site(tree, version, "texts", wheels), tree, self.source, version, self.work)

    def _hand_out(self, made: Texts, version: str) -> None:
        """Manual pages and completions for whoever installs by pip or has the single files."""
        texts = {f"man/man1/{name}": text for name, text in made.pages.items()}
        texts |= {f"completions/{name}": text for name, text in made.completions.items()}
        top = f"gpunode-{version}-man-completions"
        content = BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, text in sorted(texts.items()):
                entry = tarfile.TarInfo(f"{top}/{name}")
                entry.size, entry.mtime, entry.mode = len(text.encode()), self.source.committed_at_s, 0o644
                archive.addfile(entry, BytesIO(text.encode()))
        write(self.into / f"{top}.tar.gz", zipped(content.getvalue()))
        self.say(f"{top}.tar.gz")

    def _about(self, version: str, held: dict[str, tuple[Path, ...]], wheels: tuple[Wheel, ...]) -> None:
        """SBOM, provenance and sums: about everything else, so they come last."""
        digests = _digests(self.into)
        sbom = sbom_text(self.source, version, digests, held)
        write(self.into / f"gpunode-{version}.cdx.json", sbom.encode())
        said = provenance_text(self.source, digests, wheels, self._tools())
        write(self.into / f"gpunode-{version}.provenance.json", said.encode())
        sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(_digests(self.into).items()))
        write(self.into / "SHA256SUMS", sums.encode())
        settle(self.into, self.source, tuple(name for name in held if name.endswith(".pyz")))

    def _tools(self) -> tuple[str, ...]:
        said = [tools.run(self.source, name, "--version", cwd=self.work).splitlines()[0] for name in _TOOLS]
        packages = [f"{name} {metadata.version(name)}" for name in ("hatchling", "shiv")]
        return (f"Python {sys.version.split()[0]}", *packages, *said)


def _version(tree: Path) -> str:
    found = _VERSION.search((tree / "gpunode/__init__.py").read_text(encoding="utf-8"))
    if not found:
        raise ReleaseError("gpunode/__init__.py has no __version__")
    return found[1]


def _digests(directory: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(directory.iterdir())}
