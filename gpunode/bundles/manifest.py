"""The manifest of a bundle: JSON to values and back. Whoever can write the file may have written anything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_json
from gpunode.model.bundle import BundledFile, BundledPackage, BundledRepository, Manifest, Target
from gpunode.regex import regex

SCHEMA = "gpunode.bundle/1"
NAME = "MANIFEST.json"
LONGEST = 4 << 20  # bytes: some thousand packages
MOST_FILES = 8192
# No part of a path begins with a dot, so none leads out of the bundle, and apt reads each as it stands.
PATH = regex(r"(?=.{1,240}\Z)[A-Za-z0-9_][\w.+~:%^-]*(?:/[A-Za-z0-9_][\w.+~:%^-]*){0,16}", re.ASCII)
# Where a host finds a repository's files. apt decodes %2e%2e%2f of a file: URL, so none of it is in one.
_PLACES = {"archive": r"archive/[0-9]{1,2}", "cuda": r"vendor/[^%]+", "toolkit": r"vendor/[^%]+"}
_OWN = (NAME, "SHA256")  # what a host has at the top besides what a manifest lists (shell/bundle/unpack.sh)
_WORD = r"[A-Za-z0-9][\w.+~:^-]{0,120}"
_SHA256, _DATE = r"[0-9a-f]{64}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_TARGET = {
    "distribution": r"[a-z][a-z0-9._-]{0,40}",
    "version": r"[0-9][0-9.]{0,10}",
    "machine": r"[a-z0-9_]{1,20}",
    "driver": r"[0-9]{3}(?:\.[0-9]{2,3}){0,2}",
}


def manifest_text(manifest: Manifest) -> str:
    """The same manifest is the same text."""
    data = {
        "schema": SCHEMA,
        "target": vars(manifest.target),
        "as_of": manifest.as_of,
        "repositories": [vars(one) for one in manifest.repositories],
        "packages": [vars(one) for one in manifest.packages],
        "files": {path: vars(manifest.files[path]) for path in sorted(manifest.files)},
    }
    return json.dumps(data, indent=1) + "\n"


def parse_manifest(text: str, name: str) -> Manifest:
    """Raises UsageError that names the place of the first fault."""
    try:
        data = _mapping(read_json(text, own=True, unique=True), "the manifest")
        if data.get("schema") != SCHEMA:
            raise NotRead(f"schema {str(data.get('schema'))[:60]!r} is not {SCHEMA}")
        _only(data, ("schema", "target", "as_of", "repositories", "packages", "files"), "the manifest")
        files = {_path(path): _file(path, one) for path, one in _mapping(data["files"], "files").items()}
        return Manifest(
            _target(data["target"]),
            _text(data["as_of"], _DATE, "as_of"),
            tuple(_repository(one) for one in _list(data["repositories"], "repositories", 16)),
            tuple(_package(one, files) for one in _list(data["packages"], "packages", MOST_FILES)),
            _that_can_be(files),
        )
    except NotRead as fault:
        raise UsageError(f"{name} is not a bundle", evidence=f"{NAME}: {fault.what}") from fault


def _that_can_be(files: dict[str, BundledFile]) -> dict[str, BundledFile]:
    """Raises NotRead where they cannot all be in one directory: a host would find that out while it unpacks them."""
    above = {str(one) for path in files for one in PurePosixPath(path).parents}
    for path in files:
        if path in above or path in _OWN:
            raise NotRead(f"files.{path[:80]} is {'a directory as well' if path in above else 'a name of its own'}")
    return files


def _target(data: Any) -> Target:
    fields = _fields(data, tuple(_TARGET), "target")
    return Target(**{key: _text(fields[key], pattern, f"target.{key}") for key, pattern in _TARGET.items()})


def _repository(data: Any) -> BundledRepository:
    fields = _fields(data, ("kind", "path", "suite", "components"), "a repository")
    kind: Any = _text(fields["kind"], "|".join(_PLACES), "kind of a repository")
    components = tuple(_text(one, _WORD, "a component") for one in _list(fields["components"], "components", 16))
    suite = _text(fields["suite"], f"/|{_WORD}", "a suite")
    return BundledRepository(kind, _text(_path(fields["path"]), _PLACES[kind], f"path of {kind}"), suite, components)


def _package(data: Any, files: Mapping[str, BundledFile]) -> BundledPackage:
    fields = _fields(data, ("name", "version", "path"), "a package")
    path = _path(fields["path"])
    if path not in files:
        raise NotRead(f"package {path} is none of the files")
    return BundledPackage(_text(fields["name"], _WORD, "a name"), _text(fields["version"], _WORD, "a version"), path)


def _file(path: str, data: Any) -> BundledFile:
    fields = _fields(data, ("sha256", "size_bytes"), f"files.{path[:80]}")
    size = fields["size_bytes"]
    if type(size) is not int or not 0 <= size <= 1 << 34:
        raise NotRead(f"files.{path[:80]}: the size is no count of bytes")
    return BundledFile(_text(fields["sha256"], _SHA256, f"files.{path[:80]}"), size)


def _path(text: Any) -> str:
    if not isinstance(text, str) or not PATH.fullmatch(text):
        raise NotRead(f"{str(text)[:80]!r} is no path in a bundle")
    return text


def _text(value: Any, pattern: str, what: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
        raise NotRead(f"{what}: {str(value)[:80]!r} is not of the right form")
    return value


def _fields(data: Any, names: tuple[str, ...], what: str) -> dict[str, Any]:
    return _only(_mapping(data, what), names, what)


def _only(data: dict[str, Any], names: tuple[str, ...], what: str) -> dict[str, Any]:
    odd = sorted(set(data) ^ set(names))
    if odd:
        raise NotRead(f"{what}: {odd[0][:60]} is {'missing' if odd[0] in names else 'no key of it'}")
    return data


def _mapping(data: Any, what: str) -> dict[str, Any]:
    if type(data) is not dict or len(data) > MOST_FILES:
        raise NotRead(f"{what} is not an object of at most {MOST_FILES}")
    return data


def _list(data: Any, what: str, most: int) -> list[Any]:
    if type(data) is not list or len(data) > most:
        raise NotRead(f"{what} is not a list of at most {most}")
    return data
