"""A daemon.json that dockerd would not run with is refused with its place: a merge would bury what was meant.

Each rule was seen with dockerd 20.10, 26 and 28; what only the newer two refuse is asked of 23.0 and later, where the
runtime table was rewritten (release notes of 23.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpunode.advice import typed
from gpunode.catalog.versions import first_with
from gpunode.editing import json_text
from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least, release

Keys = tuple[str, ...]
OURS = ("runtimes", "features", "default-runtime")


def refuse(engine: RuntimeFacts, want: RuntimeSpec, text: str, config: Mapping[str, Any]) -> None:
    """Raises ConfigFileError (line:column) for what dockerd would not start on in the parts gpunode edits, and
    UnsupportedHost for what an old dockerd would not live through."""
    path = engine.config_path
    for keys, problem, evidence in _faults(engine, want, text, config):
        where = json_text.position(text, keys)
        raise ConfigFileError(
            f"{path}:{where}: {problem}",
            evidence=f"{evidence}; the file was not touched",
            remedy=f"correct it; {typed('dockerd', '--validate', '--config-file', path)} checks most of it "
            "(docker 23 and later)",
        )
    _refuse_shim(engine, str(config.get("default-runtime")))
    broken = re.search("[\udc80-\udcff]", text)
    known = release(engine.version)
    # docker 20.10 replaces such a byte. Without a known dockerd the stricter one's rule applies.
    if broken and not (known and known < first_with("docker", "strict-runtimes")):
        raise json_text.fault(path, text, broken.start(), f"byte 0x{ord(broken[0]) & 0xFF:02x} is not UTF-8")


def _refuse_shim(engine: RuntimeFacts, default: str) -> None:
    """Up to 22, the runtimes of a reloaded file replace docker's own shims, and a default among them is then nil."""
    known = release(engine.version)
    if known and known < first_with("docker", "strict-runtimes") and default.startswith("io.containerd."):
        raise UnsupportedHost(
            f"{engine.config_path}: default-runtime {default!r} is not safe to reload with docker {engine.version}",
            evidence="dockerd 20.10 dies of a nil pointer (daemon/info_unix.go:47) when runtimes are added next to it",
            remedy='write "default-runtime": "runc" there, which is the same runtime, and run gpunode again',
        )


def entry_key(entry: Mapping[str, Any], key: str) -> str:
    """How `entry` spells `key`: dockerd reads the keys inside a runtime without regard to case, the last one wins."""
    return next((k for k in reversed(list(entry)) if k.lower() == key.lower()), key)


def _faults(
    engine: RuntimeFacts, want: RuntimeSpec, text: str, config: Mapping[str, Any]
) -> Iterator[tuple[Keys, str, str]]:
    """(keys of the value, what is wrong, how we know)."""
    for key in config:
        if key != key.lower() and key.lower() in OURS:
            evidence = "dockerd exits with 'the following directives don't match any configuration option'"
            yield (key,), f"key {key!r} is not known to dockerd: it is spelled {key.lower()!r}", evidence
    yield from _wrong_types(config)
    for keys, name in _named_in_messages(config):
        if re.search("[\ud800-\udc7f\udd00-\udfff]", name):
            half = f"{name!a} has half of a surrogate pair, which is no character"
            yield keys, half, "dockerd reads U+FFFD in its place, and nothing has such a name"
    for name, entry in (config.get("runtimes") or {}).items():
        problem = _wrong_runtime(name, entry or {}, engine, want)
        if problem:
            yield ("runtimes", name), f"runtimes.{name} {problem}", "dockerd would not start, or would run runc instead"
    default = config.get("default-runtime")
    if default and not want.default and default != want.handler and not _is_known(default, config, engine):
        problem = f"default-runtime {default!r} is not among the runtimes"
        yield (
            ("default-runtime",),
            problem,
            f"dockerd exits with 'specified default runtime {default!r} does not exist'",
        )


def _wrong_types(config: Mapping[str, Any]) -> Iterator[tuple[Keys, str, str]]:
    runtimes, features = config.get("runtimes"), config.get("features")
    kinds: dict[Keys, type] = {("runtimes",): dict, ("features",): dict, ("default-runtime",): str}
    if isinstance(runtimes, dict):
        kinds |= {("runtimes", name): dict for name in runtimes}
        kinds |= {("runtimes", *keys): kind for keys, kind in _kinds_of_entries(runtimes).items()}
    if isinstance(features, dict):
        kinds |= {("features", name): bool for name in features}
    for keys, kind in kinds.items():
        value = at(config, keys)
        if not isinstance(value, (kind, type(None))):
            yield keys, f"{'.'.join(keys)} is {_kind(value)}, and dockerd wants {_kind(kind())}", "it stops at it"
        elif isinstance(value, list) and (odd := [one for one in value if not isinstance(one, (str, type(None)))]):
            yield keys, f"{'.'.join(keys)} holds {_kind(odd[0])}, and dockerd wants strings there", "it stops at it"


def _kinds_of_entries(runtimes: Mapping[str, Any]) -> dict[Keys, type]:
    """What each value of each runtime must be, by (runtime, key): dockerd reads these keys without regard to case."""
    return {
        (name, key): ENTRY_KINDS[key.lower()]
        for name, entry in runtimes.items()
        if isinstance(entry, dict)
        for key in entry
        if key.lower() in ENTRY_KINDS
    }


def _named_in_messages(config: Mapping[str, Any]) -> Iterator[tuple[Keys, str]]:
    """(where, text) of what plans and messages name: the default, the runtimes, and their programs."""
    yield ("default-runtime",), str(config.get("default-runtime") or "")
    for name, entry in (config.get("runtimes") or {}).items():
        yield ("runtimes", name), name
        for key in ("path", "runtimeType"):
            yield ("runtimes", name), str((entry or {}).get(entry_key(entry or {}, key)) or "")


# The keys of one runtime (docker's api/types/system.Runtime and its config package).
ENTRY_KINDS: dict[str, type] = {"path": str, "runtimeargs": list, "runtimetype": str, "options": dict}


def _wrong_runtime(name: str, entry: Mapping[str, Any], engine: RuntimeFacts, want: RuntimeSpec) -> str | None:
    if name == "runc":
        return "is a name that dockerd keeps for itself"
    has = {key.lower() for key, value in entry.items() if value}
    if not at_least(engine.version, first_with("docker", "strict-runtimes")):
        # Seen with 20.10.24: its path is "", and a container of it is silently runc's.
        unknown = release(engine.version) and name == want.handler and "runtimetype" in has and "path" not in has
        return f"has a runtimeType, which docker {engine.version} does not support: give it a path" if unknown else None
    if {"path", "runtimetype"} <= has:
        return "has both a path and a runtimeType, and dockerd wants one of them"
    if {"path", "options"} <= has:
        return "has options in addition to its path, and dockerd wants them with a runtimeType only"
    if {"runtimetype", "runtimeargs"} <= has:
        return "has runtimeArgs in addition to its runtimeType, and dockerd wants them with a path only"
    if not has & {"path", "runtimetype"} and name != want.handler:
        return "has neither a path nor a runtimeType"
    return None


def _is_known(name: str, config: Mapping[str, Any], engine: RuntimeFacts) -> bool:
    """A name with a dot or a slash is a containerd shim, which needs no entry (docker 23 and later)."""
    by_flag = any(f"{name}=" in flag for flag in engine.flags)
    return name == "runc" or name in (config.get("runtimes") or {}) or bool(re.search("[./]", name)) or by_flag


def at(config: Mapping[str, Any], keys: Keys) -> Any:
    """The value at `keys`; None where there is none, or a null on the way."""
    value: Any = config
    for key in keys:
        if not isinstance(value, dict) or value.get(key) is None:
            return None
        value = value[key]
    return value


def _kind(value: object) -> str:
    kinds = {bool: "true or false", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")
