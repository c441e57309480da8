"""The catalog's files kept as JSON: only what was made of exactly this YAML counts, and nothing depends on it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpunode import resources
from gpunode.catalog import documents
from gpunode.errors import UsageError

NAME = "thresholds.yaml"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog of its own, of one file; nothing of it was read yet."""
    (tmp_path / "catalog").mkdir()
    shutil.copy(Path(resources.PACKAGE) / "catalog" / NAME, tmp_path / "catalog" / NAME)
    monkeypatch.setattr(resources, "PACKAGE", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    return tmp_path / "catalog"


def read() -> object:
    return documents.document.__wrapped__(NAME)


def kept(package: Path) -> Path:
    (found,) = (package / "__pycache__").iterdir()
    return found


def test_what_is_kept_is_what_the_yaml_says(package: Path) -> None:
    first = read()
    assert json.loads(kept(package).read_text())["value"] == first
    assert read() == first
    assert documents.names() == (NAME,)


def test_the_kept_file_is_used(package: Path) -> None:
    read()
    found = json.loads(kept(package).read_text())
    kept(package).write_text(json.dumps({**found, "value": {"seen": True}}))
    assert read() == {"seen": True}


def test_nobody_else_may_write_what_is_kept_and_no_link_is_followed(package: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        read()
        assert kept(package).stat().st_mode & 0o777 == 0o644
        kept(package).unlink()
        place = documents._place(NAME)
        place.with_name(f"{place.name}.{os.getpid()}").symlink_to(tmp_path / "elsewhere")
        read()
    finally:
        os.umask(before)
    assert not (tmp_path / "elsewhere").exists()


def test_a_changed_yaml_is_read_again_whatever_its_size_and_time(package: Path) -> None:
    file = package / NAME
    read()
    before = file.stat()
    file.write_text(file.read_text().replace("checked: 2026", "checked: 2027"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert "2027-" in str(read())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sha256": 1}', '{"sha256": "HERE", "value": []}', "\xff"])
def test_a_damaged_kept_file_counts_for_nothing(package: Path, text: str) -> None:
    first = read()
    checksum = json.loads(kept(package).read_text())["sha256"]
    kept(package).write_text(text.replace("HERE", checksum), encoding="latin-1")
    assert read() == first


@pytest.mark.parametrize("hinder", ["a file in its place", "no bytecode wanted"])
def test_where_nothing_can_be_kept_all_is_read(package: Path, monkeypatch: pytest.MonkeyPatch, hinder: str) -> None:
    if hinder == "no bytecode wanted":
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
    else:
        (package / "__pycache__").write_text("")
    assert "2026-" in str(read())
    assert not (package / "__pycache__").is_dir()


def test_a_file_that_is_no_mapping_is_refused_and_not_kept(package: Path) -> None:
    (package / NAME).write_text("- 1\n")
    with pytest.raises(UsageError, match="not a mapping"):
        read()
    assert not (package / "__pycache__").exists()


def test_a_table_that_json_cannot_say_is_not_kept(package: Path) -> None:
    (package / NAME).write_text("1: one\n")
    assert read() == {1: "one"}
    assert not (package / "__pycache__").exists()


def test_every_file_of_the_catalog_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    read_whole: Callable[[str], object] = documents.document.__wrapped__
    for name in documents.names():
        read_whole(name)
    assert len(list(tmp_path.rglob("*.json"))) == len(documents.names()) > 20
