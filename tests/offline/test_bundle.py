"""A support bundle: names and sizes are gpunode's own, whatever a host says, and secrets masked."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from gpunode.errors import UsageError
from gpunode.offline.bundle import ENTRY_BYTES, ROOT, Entry, HostFiles, bundle
from gpunode.offline.output_file import write_archive

AT = {"at": "2026-11-23T12:00:00Z", "at_s": 1_795_435_200, "version": "0.1.0"}


def unpacked(data: bytes) -> dict[str, bytes]:
    """Name -> bytes; every entry is a plain file of 0600 that nobody owns."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        for member in tar:
            assert member.isreg()
            assert (member.mode, member.uid, member.gid, member.uname, member.gname) == (0o600, 0, 0, "", "")
            read = tar.extractfile(member)
            assert read is not None
            found[member.name] = read.read()
    return found


def made(*hosts: HostFiles) -> dict[str, bytes]:
    return unpacked(bundle(hosts, **AT))  # type: ignore[arg-type]


def test_the_manifest_lists_each_file_with_its_size_and_what_was_left_out_and_why() -> None:
    files = made(
        HostFiles(
            "gpu01", (Entry("report.txt", "the check", "one\n"),), (("units/kubelet.service.log", "no journalctl"),)
        ),
        HostFiles("root@gpu02:22", left_out=(("facts.txt", "unreachable: no route"),)),
    )
    assert set(files) == {f"{ROOT}/MANIFEST", f"{ROOT}/01-gpu01/report.txt"}
    manifest = files[f"{ROOT}/MANIFEST"].decode()
    assert "          4  01-gpu01/report.txt  the check\n" in manifest
    assert "  01-gpu01/units/kubelet.service.log: no journalctl\n" in manifest
    assert "  02-root-gpu02-22/facts.txt: unreachable: no route\n" in manifest
    assert manifest.startswith("gpunode support bundle, made 2026-11-23T12:00:00Z by gpunode 0.1.0\n")


@pytest.mark.parametrize("target", ["../../etc", "/etc/passwd", "a b\nc", "..", "", "\x1b[31m", "Ü" * 300])
def test_no_name_of_a_host_is_a_path(target: str) -> None:
    for name in made(HostFiles(target, (Entry("report.txt", "the check", "x"),))):
        assert name.startswith(f"{ROOT}/")
        assert ".." not in name
        assert name.isascii()
        assert name.isprintable()
        assert len(name) < 100


def test_what_a_host_says_cannot_forge_a_line_of_the_manifest() -> None:
    files = made(HostFiles("gpu01", left_out=(("facts.txt", "x\n  999  01-gpu01/evil  trusted\x1b[2J\u202e"),)))
    manifest = files[f"{ROOT}/MANIFEST"].decode()
    assert "\x1b" not in manifest
    assert "\u202e" not in manifest
    assert not [line for line in manifest.splitlines() if line.startswith("  999")]


def test_texts_are_masked_and_cleaned_and_an_exact_one_is_kept_to_the_byte() -> None:
    log = "dockerd[1]: password=hunter2zq \x1b[31m\udcff http://me:hunter2zq@proxy\n"
    kept = "@gpunode-facts 1\n@end\n\udcff"
    files = made(HostFiles("a", (Entry("docker.log", "a log", log), Entry("facts.txt", "facts", kept, exact=True))))
    text = files[f"{ROOT}/01-a/docker.log"]
    assert b"hunter2zq" not in text
    assert b"MASKED" in text
    assert b"\x1b" not in text
    assert files[f"{ROOT}/01-a/facts.txt"] == kept.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", ["../x", "/x", "X", "a//b", "a/../b", "a\nb", ""])
def test_a_name_that_is_not_gpunodes_own_is_left_out(name: str) -> None:
    files = made(HostFiles("a", (Entry(name, "?", "x"),)))
    assert set(files) == {f"{ROOT}/MANIFEST"}


def test_a_file_that_is_too_large_is_left_out_and_said() -> None:
    files = made(HostFiles("a", (Entry("x.log", "a log", "a" * (ENTRY_BYTES + 1)), Entry("y.log", "a log", "b"))))
    assert set(files) == {f"{ROOT}/MANIFEST", f"{ROOT}/01-a/y.log"}
    assert b"01-a/x.log: 8388609 bytes are more than a bundle takes" in files[f"{ROOT}/MANIFEST"]


def test_the_same_is_the_same_archive() -> None:
    host = HostFiles("a", (Entry("x.log", "a log", "b"),))
    assert bundle([host], **AT) == bundle([host], **AT)  # type: ignore[arg-type]


def test_the_archive_is_whole_or_not_there_and_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "b.tgz"
    path.write_text("old")
    path.chmod(0o644)
    write_archive(path, b"new", "--bundle")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(UsageError) as caught:
        write_archive(link, b"x", "--bundle")
    assert "symbolic link" in caught.value.evidence
    with pytest.raises(UsageError):
        write_archive(tmp_path / "none" / "b.tgz", b"x", "--bundle")
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["b.tgz", "link"]
