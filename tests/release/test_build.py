"""The parts of a release: pinned libraries, packages that are the same bytes from anywhere, what is said about them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from gpunode_release.deb import build_deb
from gpunode_release.faults import ReleaseError
from gpunode_release.make import hand_over
from gpunode_release.provenance import provenance_text
from gpunode_release.sbom import sbom_text
from gpunode_release.source import Source
from gpunode_release.texts import Texts, texts_by, texts_here
from gpunode_release.tree import add_host_files, write_manifest
from gpunode_release.wheels import Wheel, fetch, locked, unpack
from gpunode_release.zipapp import with_manifest

from gpunode.release.installed import differences
from gpunode.release.manifest import read_release

ROOT = Path(__file__).parents[2]
SOURCE = Source(ROOT, "0123456789abcdef0123456789abcdef01234567", 1764000000, ())
TEXTS = texts_here(ROOT, "1.2.3", SOURCE.committed_at_s)
METADATA = "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\nClassifier: License :: OSI Approved :: MIT License\n"


def wheel(directory: Path, name: str = "thing", **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {f"{name}-1.0.dist-info/METADATA": METADATA, **files}.items():
            archive.writestr(file, text)
    return path


def pinned(path: Path) -> Wheel:
    return Wheel(path.name, sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize("name", ["host", "controller"])
def test_the_lock_files_are_read(name: str) -> None:
    wheels = locked(ROOT / "packaging/wheels" / f"{name}.sha256")
    assert {"click", "typer", "rich", "jinja2", "pyyaml"} <= {one.name for one in wheels}
    assert ("paramiko" in {one.name for one in wheels}) == (name == "controller")


def test_a_line_that_pins_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("# a remark\nthing-1.0-py3-none-any.whl\n")
    with pytest.raises(ReleaseError, match="lock:2: no line of sha256sum"):
        locked(tmp_path / "lock")


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    assert fetch((pinned(path),), tmp_path) == (path,)
    with pytest.raises(ReleaseError, match="has the SHA-256"):
        fetch((Wheel(path.name, "0" * 64),), tmp_path)


def test_what_is_compiled_and_what_leads_elsewhere_is_left_out(tmp_path: Path) -> None:
    held = {"thing/a.py": "#!/usr/bin/env python\na = 1\n", "thing/b.so": "", "../c.py": "", "thing-1.0.data/d": ""}
    unpack((wheel(tmp_path, **held),), tmp_path / "lib", compiled=False)
    found = sorted(path.relative_to(tmp_path).as_posix() for path in (tmp_path / "lib").rglob("*") if path.is_file())
    assert found == ["lib/thing-1.0.dist-info/METADATA", "lib/thing/a.py"]
    assert (tmp_path / "lib/thing/a.py").read_text() == "#\na = 1\n"
    assert not (tmp_path / "c.py").exists()


def test_two_wheels_with_one_file_are_refused(tmp_path: Path) -> None:
    one, other = wheel(tmp_path, "one", **{"a.py": "1"}), wheel(tmp_path, "other", **{"a.py": "2"})
    with pytest.raises(ReleaseError, match=r"another wheel has another a\.py"):
        unpack((one, other), tmp_path / "lib", compiled=False)


def _deb(home: Path, umask: int) -> Path:
    before = os.umask(umask)
    try:
        lib = home / "tree/usr/lib/gpunode/lib"
        (lib / "gpunode").mkdir(parents=True)
        (lib / "gpunode/a.py").write_text("a = 1\n")
        write_manifest(lib, SOURCE, "1.2.3", "deb", whole=True)
        add_host_files(home / "tree", ROOT, TEXTS, "deb")
        return build_deb(home / "tree", ROOT, SOURCE, "1.2.3", home, home)
    finally:
        os.umask(before)


def test_pages_are_made_by_the_code_of_the_commit_and_the_libraries_of_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("a commit/packaging/gpunode_release", "site/gpunode"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
    says = """
import gpunode, json
def print_texts():
    print(json.dumps({"pages": {"p.1": gpunode.__file__}, "completions": {}}))
"""
    (tmp_path / "a commit/packaging/gpunode_release/texts.py").write_text(says)
    made = texts_by(tmp_path / "site", tmp_path / "a commit", SOURCE, "1.2.3", tmp_path)
    assert made == Texts({"p.1": str(tmp_path / "site/gpunode/__init__.py")}, {})


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_a_deb_is_the_same_bytes_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "another name").mkdir()
    one = _deb(tmp_path / "one", 0o022)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    other = _deb(tmp_path / "another name", 0o077)
    assert one.read_bytes() == other.read_bytes()
    listed = subprocess.run(("dpkg-deb", "--contents", other), capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in listed.splitlines()} == {"root/root"}
    modes = {line.split()[5]: line.split()[0] for line in listed.splitlines()}
    assert modes["./usr/bin/gpunode"] == "-rwxr-xr-x"
    assert modes["./usr/lib/gpunode/lib/gpunode/a.py"] == "-rw-r--r--"
    assert "./usr/share/man/man1/gpunode-check.1.gz" in modes


def test_the_sbom_is_valid_and_says_what_is_in_which_file(tmp_path: Path) -> None:
    path = wheel(tmp_path)
    text = sbom_text(
        SOURCE, "1.2.3", {"gpunode_1.2.3_all.deb": "0" * 64, "SHA256SUMS": "1" * 64}, {"gpunode_1.2.3_all.deb": (path,)}
    )
    # Its JSON schemas come with rfc3987-syntax, whose import takes seconds: not of whoever collects tests.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document = json.loads(text)
    (library,) = (one for one in document["components"] if one["type"] == "library")
    assert library["purl"] == "pkg:pypi/thing@1.0"
    assert library["hashes"] == [{"alg": "SHA-256", "content": pinned(path).sha256}]
    assert library["licenses"] == [{"license": {"name": "MIT License"}}]
    holds = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    assert holds["file:gpunode_1.2.3_all.deb"] == ["pkg:pypi/gpunode@1.2.3", f"wheel:{path.name}"]
    assert holds["file:SHA256SUMS"] == ["pkg:pypi/gpunode@1.2.3"]


def test_the_provenance_names_the_commit_the_libraries_and_the_tools(tmp_path: Path) -> None:
    one = pinned(wheel(tmp_path))
    said = json.loads(provenance_text(SOURCE, {"gpunode.pyz": "0" * 64}, (one, one), ("rpmbuild 4",)))
    build = said["predicate"]["buildDefinition"]
    assert said["subject"] == [{"name": "gpunode.pyz", "digest": {"sha256": "0" * 64}}]
    assert build["externalParameters"] == {"commit": SOURCE.commit}
    assert [found["digest"] for found in build["resolvedDependencies"]] == [
        {"gitCommit": SOURCE.commit},
        {"sha256": one.sha256},
    ]
    assert build["internalParameters"]["tools"] == ["rpmbuild 4"]


def test_a_zipapp_says_all_that_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "gpunode.pyz"
    path.write_bytes(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(path, "a") as archive:
        for name in ("__main__.py", "gpunode/a.py", "gpunode/RELEASE.json"):
            archive.writestr(name, f"# {name}\n")
    path.write_bytes(with_manifest(path.read_bytes(), SOURCE, "1.2.3"))
    with zipfile.ZipFile(path) as archive:
        release = read_release(archive.read("gpunode/RELEASE.json").decode())
    assert sorted(release.files) == ["__main__.py", "gpunode/a.py"]
    assert differences(release, path) == ()
    assert path.read_bytes().startswith(b"#!/usr/bin/env python3\nPK")


def test_what_a_release_that_was_killed_left_does_not_stop_the_next(tmp_path: Path) -> None:
    made, output = tmp_path / "made", tmp_path / "dist"
    for directory, text in (
        (made, "new"),
        (output, "old"),
        (tmp_path / "dist.old", "older"),
        (tmp_path / "dist.new", "half"),
    ):
        directory.mkdir()
        (directory / "SHA256SUMS").write_text(text)
    hand_over(made, output)
    assert (output / "SHA256SUMS").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist", "made"]
