"""The catalog's files, each read from YAML once and kept as JSON next to Python's own compiled files.

To parse them costs 40 ms with libyaml and ten times that without, on every run; as JSON all are read in 4 ms. A kept
file counts only with the checksum of the YAML that it was made of, and lies where Python's bytecode lies, so whoever
can write there is whoever can write gpunode. PYTHONDONTWRITEBYTECODE holds for it too.
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
    return tuple(sorted(path.name for path in (resources.PACKAGE / "catalog").glob("*.yaml")))


def read_all() -> None:
    """Every file now, for whoever has time now and none later. Raises UsageError as `document` does."""
    for name in names():
        document(name)


@cache
def document(file: str) -> Mapping[str, Any]:
    """What a file holds; nobody changes it. Days are texts. Raises UsageError for one that is no mapping."""
    text = resources.text(f"catalog/{file}").encode()
    place, checksum = _place(file), sha256(text).hexdigest()
    kept = _kept(place, checksum)
    if kept is not None:
        return kept
    value = _parsed(text)
    if not isinstance(value, dict):
        raise UsageError(f"catalog/{file}: not a mapping", remedy="reinstall gpunode")
    _keep(place, checksum, value)
    return value


def _place(file: str) -> Path:
    """Where Python would put the bytecode of such a file; PYTHONPYCACHEPREFIX moves it as well."""
    return Path(importlib.util.cache_from_source(str(resources.PACKAGE / "catalog" / f"{file}.py"))).with_suffix(
        ".json"
    )


def _kept(path: Path, checksum: str) -> dict[str, Any] | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_bytes())
        if found["sha256"] == checksum and isinstance(found["value"], dict):
            return dict(found["value"])
    return None


def _keep(path: Path, checksum: str, value: dict[str, Any]) -> None:
    """Where that is not allowed, or not possible, the YAML is parsed again the next time."""
    if (
        sys.dont_write_bytecode
        or json.loads(text := json.dumps({"sha256": checksum, "value": value}))["value"] != value
    ):
        return
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # As Python's bytecode: nobody else may write it, whatever the umask, and no link is followed.
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
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
