"""The RPM package: the same files as the Debian package."""

from __future__ import annotations

import shutil
from email.utils import formatdate
from pathlib import Path

from gpunode_release import tools
from gpunode_release.faults import ReleaseError
from gpunode_release.source import Source
from gpunode_release.tree import files_of, settle, write

NEEDS = ("rpmbuild",)
# A system without the shell has nobody else who would remove these; with it, they stay as long as the last owner does.
_WITH_OTHERS = (
    "usr/share/bash-completion",
    "usr/share/bash-completion/completions",
    "usr/share/fish",
    "usr/share/fish/vendor_completions.d",
    "usr/share/zsh",
    "usr/share/zsh/site-functions",
)


def build_rpm(tree: Path, export: Path, source: Source, version: str, work: Path, into: Path) -> Path:
    """`tree`: the files below /. Answers gpunode-VERSION-1.noarch.rpm in `into`. Raises ReleaseError."""
    root, top = work / "rpm-tree", work / "rpm"
    shutil.copytree(tree, root)
    write(root / "usr/share/licenses/gpunode/LICENSE", (export / "LICENSE").read_bytes())
    settle(root, source)
    write(top / "files", "".join(f"{line}\n" for line in _listed(root)).encode())
    defined = {
        "_topdir": top,
        "gpunode_version": version,
        "gpunode_commit": source.commit,
        "gpunode_day": _day(source),
        "gpunode_tree": root,
        "gpunode_files": top / "files",
    }
    words = [word for name, value in defined.items() for word in ("--define", f"{name} {value}")]
    tools.run(source, "rpmbuild", "-bb", *words, str(export / "packaging/rpm/gpunode.spec"), cwd=work)
    found = list(top.glob("RPMS/*/*.rpm"))
    if len(found) != 1:
        raise ReleaseError(f"rpmbuild made {len(found)} packages, not one")
    return Path(shutil.move(found[0], into / found[0].name))


def _day(source: Source) -> str:
    """As rpm wants it in a changelog, in English: "Fri Nov 27 2026"."""
    weekday, day, month, year, *_ = formatdate(source.committed_at_s).replace(",", "").split()
    return f"{weekday} {month} {day} {year}"


def _listed(root: Path) -> list[str]:
    """Every file with owner and mode, and the directories that are gpunode's own."""
    lines = []
    for path in files_of(root):
        name = path.relative_to(root).as_posix()
        kind = "%license " if name.startswith("usr/share/licenses/") else ""
        mode = "0755" if name == "usr/bin/gpunode" else "0644"
        lines.append(f'%attr({mode}, root, root) {kind}"/{name}"')
    own = [root / "usr/lib/gpunode", *sorted(p for p in (root / "usr/lib/gpunode").rglob("*") if p.is_dir())]
    names = [*(path.relative_to(root).as_posix() for path in own), *_WITH_OTHERS, "usr/share/licenses/gpunode"]
    return [*lines, *(f'%dir %attr(0755, root, root) "/{name}"' for name in names)]
