"""Runtimes that only a flag of dockerd names: a reload of a daemon.json with runtimes of its own drops them.

Seen with dockerd 20.10, 26 and 28: `dockerd --add-runtime=myrunc=/usr/bin/runc` has myrunc until the first reload of a
file that lists runtimes; containers of myrunc then cannot be started again. The same runtime in both places is taken:
of all settings, dockerd lets runtimes alone stand there twice (moby: daemon/config/config.go, skipDuplicates).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpunode.editing import json_text
from gpunode.engines.docker.edit import Keys, merged
from gpunode.engines.provenance import flags_of
from gpunode.model.facts import RuntimeFacts

Changes = tuple[tuple[Keys, object], ...]


def dropped(engine: RuntimeFacts, config: Mapping[str, Any], changes: Changes = ()) -> Changes:
    """What `config` with `changes` must have in addition, so that a reload of it drops no runtime."""
    listed = {*(config.get("runtimes") or {}), *(keys[1] for keys, _ in changes if keys[0] == "runtimes" and keys[1:])}
    if not listed and config.get("runtimes") is None:
        return ()  # then dockerd keeps those it has
    return tuple((("runtimes", name), {"path": path}) for name, path in _flags(engine).items() if name not in listed)


def kept(engine: RuntimeFacts, path: str, text: str) -> str:
    """`text` of daemon.json with the runtimes that a reload of it would drop."""
    return merged(text, dropped(engine, json_text.load(path, text)))


def _flags(engine: RuntimeFacts) -> dict[str, str]:
    """name -> path; dockerd reads the name in lower case."""
    pairs = (value.partition("=") for value in flags_of(engine.flags).get("add-runtime", []))
    return {name.strip().lower(): path.strip() for name, _, path in pairs}


def notes(carried: Changes) -> tuple[str, ...]:
    names = ", ".join(keys[1] for keys, _ in carried)
    return (f"{names}: named by --add-runtime only, and a reload would drop it",) if carried else ()
