"""gpunode.pyz: one file for a host's bare python3, made by `gpunode self zipapp` of exactly these wheels."""

from __future__ import annotations

import sys
import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from gpunode.release.manifest import NAME, Content, Release, release_text
from gpunode_release import tools
from gpunode_release.source import Source

FILE = "gpunode.pyz"
_MANIFEST = f"gpunode/{NAME}"


def build_zipapp(wheels: tuple[Path, ...], source: Source, version: str, work: Path, into: Path) -> Path:
    """`wheels`: gpunode's own and those of its libraries. Raises ReleaseError."""
    site, raw = work / "zipapp", work / f"raw-{FILE}"
    for wheel in wheels:  # with their records, by which `self zipapp` finds what belongs to each
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from gpunode.cli.app import run; run()"
    words = ("self", "zipapp", "--output", str(raw))
    tools.run(source, sys.executable, "-I", "-c", program, str(site), *words, cwd=work)
    made = into / FILE
    made.write_bytes(with_manifest(raw.read_bytes(), source, version))
    made.chmod(0o755)
    return made


def with_manifest(archive: bytes, source: Source, version: str) -> bytes:
    """The same zipapp with a RELEASE.json that says all that it holds."""
    shebang = archive[: archive.index(b"\n") + 1]
    made = BytesIO(shebang)
    made.seek(0, 2)
    with (
        zipfile.ZipFile(BytesIO(archive)) as old,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        held = {entry.filename: (entry, old.read(entry)) for entry in old.infolist() if entry.filename != _MANIFEST}
        files = {name: Content(len(content), sha256(content).hexdigest()) for name, (_, content) in held.items()}
        release = Release(version, source.commit, source.committed_at_s, "zipapp", True, files)
        like = next(iter(held.values()))[0]
        own = zipfile.ZipInfo(_MANIFEST, like.date_time)
        own.compress_type, own.create_system, own.external_attr = (
            like.compress_type,
            like.create_system,
            like.external_attr,
        )
        held[_MANIFEST] = (own, release_text(release).encode())
        for _, (entry, content) in sorted(held.items()):
            new.writestr(entry, content)
    return made.getvalue()
