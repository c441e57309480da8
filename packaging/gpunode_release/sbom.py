"""The SBOM: CycloneDX 1.6, what is inside of each artifact that brings libraries along."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from email.parser import Parser
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from gpunode_release.source import Source
from gpunode_release.wheels import Wheel

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "pkg:pypi/gpunode")


def sbom_text(source: Source, version: str, artifacts: Mapping[str, str], held: Mapping[str, Sequence[Path]]) -> str:
    """`artifacts`: file name to SHA-256. `held`: the wheels in each of them, for those that hold some."""
    wheels = {path.name: path for paths in held.values() for path in paths}
    own = f"pkg:pypi/gpunode@{version}"
    made = {name: f"file:{name}" for name in artifacts}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, f'{version} {source.commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(source.committed_at_s)),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "gpunode",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": "gpunode:commit", "value": source.commit}],
            },
        },
        "components": [_library(path) for _, path in sorted(wheels.items())]
        + [_artifact(name, made[name], digest) for name, digest in sorted(artifacts.items())],
        "dependencies": [
            {"ref": made[name], "dependsOn": [own, *sorted(_ref(path.name) for path in held.get(name, ()))]}
            for name in sorted(artifacts)
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _artifact(name: str, reference: str, digest: str) -> dict[str, Any]:
    return {
        "type": "file",
        "bom-ref": reference,
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def _library(path: Path) -> dict[str, Any]:
    """One wheel: a library for several Pythons has several."""
    wheel = Wheel(path.name, "")
    with ZipFile(path) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(record).decode("utf-8"))
    license_name = (
        metadata["License-Expression"] or _classified(metadata.get_all("Classifier") or []) or metadata["License"]
    )
    return {
        "type": "library",
        "bom-ref": _ref(path.name),
        "name": wheel.name,
        "version": wheel.version,
        "purl": f"pkg:pypi/{wheel.name}@{wheel.version}",
        "hashes": [{"alg": "SHA-256", "content": sha256(path.read_bytes()).hexdigest()}],
        **({"licenses": [{"license": {"name": license_name.splitlines()[0]}}]} if license_name else {}),
        "properties": [{"name": "gpunode:wheel", "value": path.name}],
    }


def _classified(classifiers: Sequence[str]) -> str:
    """ "License :: OSI Approved :: MIT License" is "MIT License"."""
    return next((line.split(" :: ")[-1] for line in classifiers if line.startswith("License :: ")), "")


def _ref(wheel: str) -> str:
    return f"wheel:{wheel}"
