"""What an API server of a release takes: the schemas of kubernetes-validate, loaded once for each release.

Strict: a field that the object does not have is a fault, where a server drops it without a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from referencing import Registry, Resource


def _directory() -> Path:
    spec = find_spec("kubernetes_validate")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "kubernetes-json-schema"


SCHEMAS = _directory()
RELEASES = sorted(
    (path.name[1:].removesuffix(".0-local-strict") for path in SCHEMAS.glob("v*-local-strict")),
    key=lambda release: int(release.partition(".")[2]),
)  # "1.25" to "1.37"


def faults(one: Mapping[str, Any], release: str) -> list[str]:
    """What the schema of `release` says against one object, as "path: message"."""
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", one["apiVersion"])  # rbac.authorization.k8s.io/v1 -> rbac-v1
    return [
        f"{'.'.join(map(str, fault.path))}: {fault.message[:200]}"
        for fault in _validator(release, f"{one['kind'].lower()}-{group}").iter_errors(one)
    ]


@cache
def _validator(release: str, kind: str) -> Any:
    # It imports rfc3987-syntax, which takes seconds: not of whoever collects tests.
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped, unused-ignore]

    directory = SCHEMAS / f"v{release}.0-local-strict"
    schema = json.loads((directory / f"{kind}.json").read_text())
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ _definitions(release))


@cache
def _definitions(release: str) -> Registry[Any]:
    path = SCHEMAS / f"v{release}.0-local-strict" / "_definitions.json"
    registry: Registry[Any] = Registry()
    return Resource.from_contents(json.loads(path.read_text())) @ registry
