"""The Debian package: gpunode and its pure Python libraries in /usr/lib/gpunode, by the system's own python3."""

from __future__ import annotations

import shutil
from email.utils import formatdate
from hashlib import md5
from pathlib import Path

from gpunode_release import tools
from gpunode_release.source import Source
from gpunode_release.tree import files_of, settle, write, zipped

NEEDS = ("dpkg-deb",)


def build_deb(tree: Path, export: Path, source: Source, version: str, work: Path, into: Path) -> Path:
    """`tree`: the files below /. Answers gpunode_VERSION_all.deb in `into`. Raises ReleaseError."""
    root = work / "deb"
    shutil.copytree(tree, root)
    doc, packaging = root / "usr/share/doc/gpunode", export / "packaging/debian"
    write(doc / "changelog.gz", zipped(_changelog(source, version)))
    write(doc / "copyright", _copyright(root, packaging).encode())
    kept = list(files_of(root))
    size_kib = sum(-(-path.stat().st_size // 1024) for path in kept) + sum(path.is_dir() for path in root.rglob("*"))
    sums = "".join(f"{md5(path.read_bytes()).hexdigest()}  {path.relative_to(root).as_posix()}\n" for path in kept)
    control = (packaging / "control.in").read_text(encoding="utf-8")
    control = control.replace("@VERSION@", version).replace("@SIZE@", str(size_kib))
    write(root / "DEBIAN/control", control.encode())
    write(root / "DEBIAN/md5sums", sums.encode())
    for name in ("postinst", "prerm"):
        write(root / "DEBIAN" / name, (packaging / name).read_bytes())
    settle(root, source, ("usr/bin/gpunode", "DEBIAN/postinst", "DEBIAN/prerm"))
    made = into / f"gpunode_{version}_all.deb"
    tools.run(source, "dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(made), cwd=work)
    return made


def _changelog(source: Source, version: str) -> str:
    """Of the package; that of gpunode is CHANGELOG.md."""
    when = formatdate(source.committed_at_s)
    return (
        f"gpunode ({version}) stable; urgency=medium\n\n  * Built from commit {source.commit}.\n\n"
        f" -- The gpunode authors <gpunode@invalid.invalid>  {when}\n"
    )


def _text(path: Path) -> str:
    """A licence; Debian has the Apache License on every system, and asks for no second copy."""
    text = path.read_text(encoding="utf-8")
    whole = "Apache License" in text and "TERMS AND CONDITIONS FOR USE" in text
    return "Apache-2.0: /usr/share/common-licenses/Apache-2.0" if whole else text


def _copyright(root: Path, packaging: Path) -> str:
    """gpunode's own licence and, word for word, those of the libraries that come along."""
    parts = [(packaging / "copyright.head").read_text(encoding="utf-8")]
    for path in files_of(root / "usr/lib/gpunode/lib"):
        record = path.relative_to(root / "usr/lib/gpunode/lib").parts[0]
        if record.endswith(".dist-info") and path.name != "METADATA":
            name = record.split("-")[0]
            text = "".join(f" {line.rstrip() or '.'}\n" for line in _text(path).splitlines())
            files = f"usr/lib/gpunode/lib/{name}*"
            parts.append(f"\nFiles: {files}\nCopyright: see the text below\nLicense: {name}-{path.stem}\n{text}")
    return "".join(parts)
