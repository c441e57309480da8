"""The catalog's files, each read from YAML once and kept as JSON next to Python's own compiled files.

To parse them costs 40 ms with libyaml and ten times that without, on every run; as JSON all are read in 4 ms. A kept
file counts only with the checksum of the YAML that it was made of, and lies where Python's bytecode lies, so whoever
can write there is whoever can write gpunode. PYTHONDONTWRITEBYTECODE holds for it too. A zipapp brings its kept files
along (release/zipapp.py): libyaml cannot be in it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from gpunode import resources
from gpunode.errors import UsageError


def names() -> tuple[str, ...]:
    """Of every file, "gpus.yaml"."""
    return tuple(name for name in resources.names("catalog") if name.endswith(".yaml"))


def read_all() -> None:
    """Every file now, for whoever has time now and none later. Raises UsageError as `document` does."""
    for name in names():
        document(name)


@cache
def document(file: str) -> Mapping[str, Any]:
    """What a file holds; nobody changes it. Days are texts. Raises UsageError for one that is no mapping."""
    text = resources.text(f"catalog/{file}").encode()
    checksum = sha256(text).hexdigest()
    kept = _kept(file, checksum)
    if kept is not None:
        return kept
    value = _parsed(text)
    if not isinstance(value, dict):
        raise UsageError(f"catalog/{file}: not a mapping", remedy="reinstall gpunode")
    if resources.archive() is None:
        with suppress(ValueError):
            _keep(_place(file), kept_text(text, value))
    return value


def in_archive(file: str) -> str:
    """Where a zipapp holds the kept file of one: "gpus.yaml" -> "catalog/gpus.json", relative to the package."""
    return f"catalog/{os.path.splitext(file)[0]}.json"


def kept_text(text: bytes, value: Mapping[str, Any]) -> str:
    """What is kept of a file. Raises ValueError where JSON cannot say the same."""
    kept = json.dumps({"sha256": sha256(text).hexdigest(), "value": value})
    if json.loads(kept)["value"] != value:
        raise ValueError("JSON has no word for something in it")
    return kept


def _place(file: str) -> Path:
    """Where Python would put the bytecode of such a file; PYTHONPYCACHEPREFIX moves it as well."""
    return Path(importlib.util.cache_from_source(os.path.join(resources.PACKAGE, "catalog", f"{file}.py"))).with_suffix(
        ".json"
    )


def _kept(file: str, checksum: str) -> dict[str, Any] | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        written = _place(file).read_bytes() if resources.archive() is None else resources.data(in_archive(file))
        found = json.loads(written)
        if found["sha256"] == checksum and isinstance(found["value"], dict):
            return dict(found["value"])
    return None


def _keep(path: Path, kept: str) -> None:
    """Where that is not allowed, or not possible, the YAML is parsed again the next time."""
    if sys.dont_write_bytecode:
        return
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # As Python's bytecode: nobody else may write it, whatever the umask, and no link is followed.
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(kept)
        new.replace(path)


def _parsed(text: bytes) -> object:
    import yaml  # most runs need none of it

    # CSafeLoader is ten times faster; it is absent where PyYAML was built without libyaml.
    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    days_are_texts = {  # which JSON has as well
        first: [(tag, form) for tag, form in forms if not tag.endswith(":timestamp")]
        for first, forms in base.yaml_implicit_resolvers.items()
    }
    return yaml.load(text, Loader=type("Loader", (base,), {"yaml_implicit_resolvers": days_are_texts}))
