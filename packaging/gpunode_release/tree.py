"""The files of deb and rpm below /, and the directory of packages that the other artifacts hold as well."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from gpunode.release.installed import content_of
from gpunode.release.manifest import NAME, Release, release_text
from gpunode_release.completions import BASH, FISH, ZSH
from gpunode_release.source import Source
from gpunode_release.texts import Texts

LIB = Path("usr/lib/gpunode")
_COMPLETIONS = {
    f"bash/{BASH}": "usr/share/bash-completion/completions/gpunode",
    f"fish/{FISH}": "usr/share/fish/vendor_completions.d/gpunode.fish",
}
# In the path of Debian's zsh, and of everybody else's.
ZSH_OF = {"deb": "usr/share/zsh/vendor-completions/_gpunode", "rpm": "usr/share/zsh/site-functions/_gpunode"}


def add_package(export: Path, into: Path) -> None:
    """gpunode with its templates, as the wheel has it."""
    shutil.copytree(export / "gpunode", into / "gpunode")
    shutil.copytree(export / "templates", into / "gpunode" / "templates", dirs_exist_ok=True)


def write_manifest(lib: Path, source: Source, version: str, artifact: str, *, whole: bool) -> None:
    """RELEASE.json of what lies in `lib`: all of it, or of the package alone."""
    tops = [lib] if whole else [lib / "gpunode"]
    files = {path.relative_to(lib).as_posix(): content_of(path) for top in tops for path in files_of(top)}
    release = Release(version, source.commit, source.committed_at_s, artifact, whole, files)
    (lib / "gpunode" / NAME).write_text(release_text(release), encoding="utf-8")


def add_host_files(root: Path, export: Path, texts: Texts, package: str) -> None:
    """What lies outside of usr/lib/gpunode/lib: the command, its pages, its completions."""
    packaging = export / "packaging"
    _copy(packaging / "launcher.sh", root / "usr/bin/gpunode")
    for name in ("main.py", "compile.py"):
        _copy(packaging / name, root / LIB / name)
    for name, text in texts.pages.items():
        write(root / "usr/share/man/man1" / f"{name}.gz", zipped(text))
    places = {**_COMPLETIONS, f"zsh/{ZSH}": ZSH_OF[package]}
    for name, text in texts.completions.items():
        write(root / places[name], text.encode())


def settle(root: Path, source: Source, programs: tuple[str, ...] = ("usr/bin/gpunode",)) -> None:
    """The modes and times that a release has, whatever the umask and the clock: 644, 755, and the commit's time."""
    for path in (root, *sorted(root.rglob("*"))):
        if path.is_symlink():
            continue
        program = path.is_dir() or path.relative_to(root).as_posix() in programs
        path.chmod(0o755 if program else 0o644)
        os.utime(path, (source.committed_at_s, source.committed_at_s))


def files_of(directory: Path) -> Iterator[Path]:
    """Plain files below it, sorted."""
    return (path for path in sorted(directory.rglob("*")) if stat.S_ISREG(path.lstat().st_mode))


def zipped(text: str | bytes) -> bytes:
    """As gzip -9n does it: no name, no time."""
    return gzip.compress(text.encode() if isinstance(text, str) else text, 9, mtime=0)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _copy(source: Path, target: Path) -> None:
    write(target, source.read_bytes())
