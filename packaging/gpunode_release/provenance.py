"""The provenance: an in-toto statement with SLSA's predicate, which commit and which libraries became which files.

It is not signed, and names no time and no machine: whoever builds the same commit gets the same statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from gpunode_release.source import Source
from gpunode_release.wheels import Wheel

_BUILD_TYPE = "urn:gpunode:build:scripts/release:1"


def provenance_text(source: Source, artifacts: Mapping[str, str], wheels: Iterable[Wheel], tools: Iterable[str]) -> str:
    """`artifacts`: file name to SHA-256. `tools`: "dpkg-deb 1.21.22": another version may make other bytes."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(artifacts.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD_TYPE,
                "externalParameters": {"commit": source.commit},
                "internalParameters": {"source_date_epoch": source.committed_at_s, "tools": list(tools)},
                "resolvedDependencies": [
                    {"uri": "git+urn:gpunode:source", "digest": {"gitCommit": source.commit}},
                    *(
                        {
                            "uri": f"pkg:pypi/{wheel.name}@{wheel.version}",
                            "name": wheel.file,
                            "digest": {"sha256": wheel.sha256},
                        }
                        for wheel in sorted(set(wheels))
                    ),
                ],
            },
            "runDetails": {"builder": {"id": _BUILD_TYPE}},
        },
    }
    return json.dumps(statement, indent=2) + "\n"
