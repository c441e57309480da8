"""Where docker's settings come from: daemon.json, a flag of dockerd, or dockerd itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gpunode.editing import json_text
from gpunode.engines.provenance import BUILT_IN, DEFAULT, Keys, Origin, flags_of, in_file
from gpunode.errors import ConfigFileError
from gpunode.model.facts import RuntimeFacts
from gpunode.model.files import FileFacts


def origins(file: FileFacts, engine: RuntimeFacts) -> Iterator[Origin]:
    """A file that does not parse counts for nothing: the daemon reports what it runs with."""
    try:
        config = json_text.load(file.path, file.text or "")
    except ConfigFileError:
        config = {}
    text, flags = file.text or "", flags_of(engine.flags)

    def line(keys: Keys) -> int:
        return int(json_text.position(text, keys).partition(":")[0])

    if "default-runtime" in flags:
        yield Origin(DEFAULT, flags["default-runtime"][-1], "flag")
    elif isinstance(config.get("default-runtime"), str):
        yield in_file(DEFAULT, config["default-runtime"], file, line(("default-runtime",)))
    else:
        yield Origin(DEFAULT, "runc", BUILT_IN)
    runtimes = _table(config.get("runtimes"))
    by_flag = dict(value.partition("=")[::2] for value in flags.get("add-runtime", []))
    for name in sorted({*engine.handlers, *runtimes, *by_flag}):
        if name in runtimes:
            yield in_file(f"handler {name}", _program(runtimes[name]), file, line(("runtimes", name)))
        else:
            yield Origin(f"handler {name}", by_flag.get(name, ""), "flag" if name in by_flag else BUILT_IN)
    features = _table(config.get("features"))
    if "cdi" in features:
        yield in_file("CDI", json.dumps(features["cdi"]), file, line(("features", "cdi")))
    elif engine.cdi is not None:
        yield Origin("CDI", json.dumps(engine.cdi), BUILT_IN)


def _program(entry: object) -> str:
    table = _table(entry)
    return str(table.get("path") or _table(table.get("options")).get("BinaryName") or table.get("runtimeType") or "")


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
