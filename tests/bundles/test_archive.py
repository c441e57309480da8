"""A bundle is believed as far as it was checked: every byte of it, and no tar that anybody could write."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gpunode.bundles.archive import ROOT, read_bundle, write_bundle
from gpunode.bundles.compare import differences
from gpunode.bundles.index_dates import date_of, iso, newest
from gpunode.bundles.manifest import manifest_text, parse_manifest
from gpunode.errors import GpunodeError, UsageError
from gpunode.model.bundle import BundledFile, BundledPackage, BundledRepository, Manifest, Target

RELEASE = "Origin: NVIDIA\nDate: Thu, 26 Nov 2026 10:00:00 UTC\nValid-Until: Thu, 03 Dec 2026 10:00:00 UTC\n"
FILES = {
    "vendor/a/InRelease": RELEASE.encode(),
    "vendor/a/Packages": b"Package: nvidia-open\n",
    "vendor/a/nvidia-open_595.91.07-1_amd64.deb": b"deb" * 700,
}
NOW = datetime(2026, 11, 27, tzinfo=timezone.utc)


def manifest(files: dict[str, bytes] = FILES, **changes: object) -> Manifest:
    listed = {path: BundledFile(hashlib.sha256(data).hexdigest(), len(data)) for path, data in files.items()}
    values: dict[str, object] = {
        "target": Target("debian", "12", "x86_64", "595"),
        "as_of": iso(newest([files.get("vendor/a/InRelease", b"").decode()])),
        "repositories": (BundledRepository("cuda", "vendor/a", "/", ()),),
        "packages": (BundledPackage("nvidia-open", "595.91.07-1", "vendor/a/nvidia-open_595.91.07-1_amd64.deb"),),
        "files": listed,
    }
    return Manifest(**{**values, **changes})  # type: ignore[arg-type]


def bundle(directory: Path, files: dict[str, bytes] = FILES) -> Path:
    for path, data in files.items():
        (directory / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / "tree" / path).write_bytes(data)
    with (directory / "gpu.bundle").open("wb") as out:
        write_bundle(manifest(files), directory / "tree", out)
    return directory / "gpu.bundle"


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as out:
        for member, data in members:
            out.addfile(member, io.BytesIO(data))
    return path


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def listing(one: Manifest) -> tuple[tarfile.TarInfo, bytes]:
    return member(f"{ROOT}/MANIFEST.json", manifest_text(one).encode())


def refusal(path: Path, kind: type[GpunodeError] = UsageError) -> str:
    with pytest.raises(kind) as caught:
        read_bundle(path, NOW)
    return f"{caught.value.problem}\n{caught.value.evidence}"


def test_what_was_written_is_read_back_and_the_same_content_is_the_same_file(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    path, other = bundle(first), bundle(second)
    os.utime(second / "tree/vendor/a/Packages", (1, 1))
    read = read_bundle(path, NOW)
    assert read.manifest == manifest()
    assert read.valid_until == "2026-12-03T10:00:00Z"
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.read_bytes() == other.read_bytes()


def test_a_name_that_no_plain_tar_holds_is_said(tmp_path: Path) -> None:
    with pytest.raises(GpunodeError, match="cannot be put into a bundle"):
        bundle(tmp_path, {f"vendor/a/{'x' * 120}.deb": b"x"})


def test_a_manifest_makes_no_index_newer_than_it_is(tmp_path: Path) -> None:
    listed = header_of("MANIFEST.json", manifest_text(manifest(as_of="2026-11-27T00:00:00Z")).encode())
    (tmp_path / "b").write_bytes(whole_of(listed, *(header_of(path, data) for path, data in sorted(FILES.items()))))
    assert "as of 2026-11-27T00:00:00Z, and the newest says 2026-11-26T10:00:00Z" in refusal(tmp_path / "b")


def test_a_changed_byte_anywhere_is_refused(tmp_path: Path) -> None:
    path = bundle(tmp_path)
    whole = path.read_bytes()
    end = whole.index(b"deb" * 700) + 2100
    for place in range(0, end, 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        if (said := _refused(path)) is None:  # padding behind a file: nobody reads it
            assert whole[place] == 0
        else:
            assert "internal" not in said


def _refused(path: Path) -> str | None:
    try:
        read_bundle(path, NOW)
    except GpunodeError as error:
        return error.problem
    return None


def test_a_bundle_that_ends_early_is_refused(tmp_path: Path) -> None:
    path = bundle(tmp_path)
    whole = path.read_bytes()
    for length in (0, 100, 512, 5000, len(whole.rstrip(b"\0")) - 600):
        path.write_bytes(whole[:length])
        assert "is not a" in refusal(path)


def test_a_file_of_it_is_named_that_is_not_what_the_manifest_says(tmp_path: Path) -> None:
    path = tmp_path / "b"
    one, deb = manifest(), "vendor/a/nvidia-open_595.91.07-1_amd64.deb"
    rest = [member(f"{ROOT}/{name}", data) for name, data in sorted(FILES.items())]
    assert f"changed after it was made: {deb}" in refusal(
        tar(path, listing(one), *rest[:1], rest[1], member(f"{ROOT}/{deb}", b"x" * 2100))
    )
    assert "its manifest says 2100" in refusal(tar(path, listing(one), *rest[:2], member(f"{ROOT}/{deb}", b"x")))
    assert f"made: {deb}\nit is not in the file" in refusal(tar(path, listing(one), *rest[:2]))
    assert "does not list it, or it is there twice" in refusal(tar(path, listing(one), *rest, rest[0]))
    assert "made: evil\nits manifest does not list it" in refusal(
        tar(path, listing(one), *rest, member(f"{ROOT}/evil"))
    )


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (member(f"{ROOT}/vendor/a/x", type=tarfile.SYMTYPE, linkname="/etc/shadow"), "is a link"),
        (member(f"{ROOT}/vendor/a/x", type=tarfile.LNKTYPE, linkname="/etc/shadow"), "is a link"),
        (member(f"{ROOT}/vendor", type=tarfile.DIRTYPE), "is no file of it"),
        (member(f"{ROOT}/x", type=tarfile.CHRTYPE), "is no file of it"),
        (member("/etc/passwd"), "is no file of it"),
        (member("../etc/passwd"), "is no file of it"),
        (member(f"{ROOT}/../etc/passwd"), "its manifest does not list it"),
    ],
)
def test_nothing_but_plain_files_below_one_directory(
    odd: tuple[tarfile.TarInfo, bytes], said: str, tmp_path: Path
) -> None:
    assert said in refusal(tar(tmp_path / "b", listing(manifest()), odd))


def test_long_names_by_further_headers_are_not_followed(tmp_path: Path) -> None:
    long, data = member(f"{ROOT}/{'a' * 300}", b"x")
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        listed = header_of("MANIFEST.json", manifest_text(manifest()).encode())
        (tmp_path / "b").write_bytes(whole_of(listed, (long.tobuf(form), data)))
        assert "is no file of it" in refusal(tmp_path / "b")


def whole_of(*members: tuple[bytes, bytes], end: bytes = b"\0" * 1024) -> bytes:
    return b"".join(header + data + b"\0" * (-len(data) % 512) for header, data in members) + end


def header_of(path: str, data: bytes, **fields: object) -> tuple[bytes, bytes]:
    info, _ = member(f"{ROOT}/{path}", data, **{"mode": 0o644, **fields})
    return info.tobuf(tarfile.USTAR_FORMAT), data


def older_gnu(path: str, data: bytes) -> tuple[bytes, bytes]:
    """A header that tarfile reads as `path`, and GNU tar without its first directory."""
    first, _, rest = path.partition("/")
    head = bytearray(member(rest, data, mode=0o644)[0].tobuf(tarfile.USTAR_FORMAT))
    front = f"{ROOT}/{first}".encode()
    head[257:265], head[345 : 345 + len(front)], head[148:156] = b"ustar  \0", front, b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head), data


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": 0o6755},
        {"mode": 0o755},
        {"uid": 1000},
        {"gid": 1000},
        {"uname": "ann"},
        {"mtime": 1},
        {"linkname": "x"},
    ],
)
def test_a_header_that_says_more_than_a_name_and_a_size_is_refused(fields: dict[str, object], tmp_path: Path) -> None:
    listed = header_of("MANIFEST.json", manifest_text(manifest()).encode())
    plain = [header_of(path, data) for path, data in sorted(FILES.items())]
    (tmp_path / "b").write_bytes(whole_of(listed, *plain))
    read_bundle(tmp_path / "b", NOW)
    odd = [header_of(path, data, **fields) for path, data in sorted(FILES.items())]
    (tmp_path / "b").write_bytes(whole_of(listed, *odd))
    assert "is not as gpunode writes one" in refusal(tmp_path / "b")


def test_a_header_that_two_tars_read_as_two_files_is_refused(tmp_path: Path) -> None:
    files = {"z/vendor/a/Packages": b"other", **FILES}
    listed = header_of("MANIFEST.json", manifest_text(manifest(files)).encode())
    plain = [header_of(path, data) for path, data in sorted(FILES.items())]
    (tmp_path / "b").write_bytes(whole_of(listed, *plain, older_gnu("z/vendor/a/Packages", b"other")))
    assert "is not as gpunode writes one" in refusal(tmp_path / "b")


def test_nothing_stands_behind_its_end(tmp_path: Path) -> None:
    whole = bundle(tmp_path).read_bytes()
    link = member(f"{ROOT}/x", type=tarfile.SYMTYPE, linkname="/etc")[0].tobuf()
    (tmp_path / "b").write_bytes(whole.rstrip(b"\0") + b"\0" * 1024 + link)
    assert "something stands behind its end" in refusal(tmp_path / "b")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "it is not a regular file" in refusal(tmp_path / "fifo")
    assert "it is not a regular file" in refusal(tmp_path)
    assert "No such file" in refusal(tmp_path / "absent")
    (tmp_path / "text").write_text("hello" * 1000)
    assert "it is no tar" in refusal(tmp_path / "text")
    assert f"its first file is not {ROOT}/MANIFEST.json" in refusal(tar(tmp_path / "b", member(f"{ROOT}/x")))


def test_an_index_that_has_ended_is_refused_by_its_name_and_day(tmp_path: Path) -> None:
    path = bundle(tmp_path)
    later = datetime(2026, 12, 4, tzinfo=timezone.utc)
    with pytest.raises(GpunodeError, match="too old: its signed index vendor/a/InRelease was valid until 2026-12-03"):
        read_bundle(path, later)


@pytest.mark.parametrize(
    "date",
    [
        "Thu, 26 Nov 99999999999999999999 10:00:00 +0000",
        "Thu, 99999999999999999999 Nov 2026 10:00:00 +0000",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "soon",
    ],
)
def test_a_date_that_no_calendar_has_is_none(date: str, tmp_path: Path) -> None:
    index = f"Date: {date}\nValid-Until: {date}\n"
    assert date_of(index, "Valid-Until") is None
    assert read_bundle(bundle(tmp_path, {**FILES, "vendor/a/InRelease": index.encode()}), NOW).valid_until is None


Change = Callable[[dict[str, object]], object]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema="gpunode.bundle/2"), "is not gpunode.bundle/1"),
        (lambda d: d.update(extra=1), "extra is no key of it"),
        (lambda d: d.pop("target"), "target is missing"),
        (lambda d: d.update(target={"distribution": "debian; reboot"}), "target"),
        (lambda d: d.update(as_of="$(reboot)"), "as_of"),
        (lambda d: d.update(files={"../x": {"sha256": "0" * 64, "size_bytes": 1}}), "is no path in a bundle"),
        (lambda d: d.update(files={"/x": {"sha256": "0" * 64, "size_bytes": 1}}), "is no path in a bundle"),
        (lambda d: d.update(files={"a/.git/x": {"sha256": "0" * 64, "size_bytes": 1}}), "is no path in a bundle"),
        (lambda d: d.update(files={"x": {"sha256": "0" * 64, "size_bytes": -1}}), "no count of bytes"),
        (lambda d: d.update(files={"x": {"sha256": "0" * 64, "size_bytes": True}}), "no count of bytes"),
        (lambda d: d.update(files=[]), "is not an object"),
        (
            lambda d: d["files"].update({"vendor": d["files"]["vendor/a/Packages"]}),
            "files.vendor is a directory as well",
        ),
        (lambda d: d["files"].update({"SHA256": d["files"]["vendor/a/Packages"]}), "SHA256 is a name of its own"),
        (lambda d: d["repositories"][0].update(path="srv/a"), "path of cuda"),
        (lambda d: d["repositories"][0].update(path="vendor/a%2f%2e%2e%2f%2e%2e%2ftmp"), "path of cuda"),
        (lambda d: d["repositories"][0].update(kind="archive", path="vendor/a"), "path of archive"),
        (lambda d: d.update(packages=[{"name": "a", "version": "1", "path": "nowhere"}]), "is none of the files"),
        (lambda d: d.update(repositories=[{"kind": "x", "path": "a", "suite": "/", "components": []}]), "kind"),
        (
            lambda d: d.update(repositories=[{"kind": "cuda", "path": "a", "suite": "b\nURIs: x", "components": []}]),
            "a suite",
        ),
    ],
)
def test_a_manifest_of_another_form_is_refused_by_its_place(change: Change, said: str) -> None:
    data = json.loads(manifest_text(manifest()))
    change(data)
    with pytest.raises(UsageError) as caught:
        parse_manifest(json.dumps(data), "gpu.bundle")
    assert said in caught.value.evidence


def test_two_bundles_differ_by_versions_and_by_bytes() -> None:
    name = "vendor/a/nvidia-open_595.91.07-1_amd64.deb"
    other = manifest({**FILES, name: b"other" * 420})
    assert differences(manifest(), manifest()) == ()
    assert differences(manifest(), other) == ("nvidia-open 595.91.07-1: other bytes",)
    newer = manifest(packages=(BundledPackage("nvidia-open", "600.1-1", name),))
    assert differences(manifest(), newer) == ("nvidia-open 595.91.07-1 -> 600.1-1",)
    assert differences(manifest(), manifest(packages=())) == ("nvidia-open 595.91.07-1 -> absent",)
    arm = manifest(target=Target("debian", "12", "aarch64", "595"))
    assert differences(manifest(), arm) == ("target debian-12/595 on x86_64 -> debian-12/595 on aarch64",)
