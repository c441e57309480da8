"""daemon.json: what a spec asks for that the file does not say yet, and the file with that merged in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.resources import render
from gpunode.runtimes import jsontext
from gpunode.runtimes.base import Edit
from gpunode.runtimes.versions import at_least

# CDI: a feature flag from 25.0, on by default from 28.2 (docker's release notes).
HAS_CDI, CDI_BY_DEFAULT = (25, 0), (28, 2)
Keys = tuple[str, ...]


def refuse_wrong_types(path: str, text: str, config: Mapping[str, Any]) -> None:
    """dockerd would not start on these, and a merge would bury what was meant."""
    objects = [("runtimes",), ("features",), *(("runtimes", name) for name in config.get("runtimes") or ())]
    for keys, kinds in [*((k, (dict, type(None))) for k in objects), (("default-runtime",), (str, type(None)))]:
        value = _at(config, keys)
        if not isinstance(value, kinds):
            raise ConfigFileError(
                f"{path}:{jsontext.position(text, keys)}: {'.'.join(keys)} is {_kind(value)}, "
                f"and dockerd wants {'a string' if str in kinds else 'an object'}",
                evidence="the file was not touched",
                remedy=f"correct it; dockerd --validate --config-file {path} judges it (docker 23 and later)",
            )
    for key in config:
        if key != key.lower() and key.lower() in ("runtimes", "features", "default-runtime"):
            raise ConfigFileError(
                f"{path}: key {key!r} is not known to dockerd: it is spelled {key.lower()!r}",
                evidence="dockerd exits with 'the following directives don't match any configuration option'",
                remedy=f"spell it {key.lower()!r}",
            )


def missing(engine: RuntimeFacts, want: RuntimeSpec, config: Mapping[str, Any]) -> Iterator[tuple[Keys, object]]:
    """(keys, value) of everything the fragment asks for that the file does not say yet."""
    cdi = want.cdi and _must_say_cdi(engine, config)
    text = render("runtimes/docker.json.j2", handler=want.handler, path=want.path, default=want.default, cdi=cdi)
    fragment: dict[str, Any] = json.loads(text)
    by_flag = _flag(engine, "--default-runtime")
    if want.default and by_flag:
        _refuse_other_default(by_flag, want)
        del fragment["default-runtime"]
    if f"{want.handler}=" in (_flag(engine, "--add-runtime") or ""):
        del fragment["runtimes"]
    else:
        handler = (config.get("runtimes") or {}).get(want.handler)
        if handler is not None:
            yield from _runtime_changes(("runtimes", want.handler), handler, want.path)
            del fragment["runtimes"]
    for keys, value in _leaves(fragment):
        if _at(config, keys) != value:
            yield keys, value


def _runtime_changes(keys: Keys, handler: Mapping[str, Any], path: str) -> Iterator[tuple[Keys, object]]:
    """An entry that is there keeps its args; only a path to something else (or to nothing) is put right."""
    if "runtimeType" in handler:
        keys, handler, key = (*keys, "options"), handler.get("options") or {}, "BinaryName"
    else:
        key = "path"
    # A bare name is looked up in dockerd's PATH: nvidia-docker2 wrote it so, and it works.
    if handler.get(key) not in (path, path.rsplit("/", 1)[-1]):
        yield (*keys, key), path


def _leaves(fragment: Mapping[str, Any]) -> Iterator[tuple[Keys, object]]:
    for key, value in fragment.items():
        if isinstance(value, dict):
            # One handler is one value: it is added whole or not at all.
            yield from (((key, name), inner) for name, inner in value.items())
        else:
            yield (key,), value


def _must_say_cdi(engine: RuntimeFacts, config: Mapping[str, Any]) -> bool:
    if engine.version is not None and not at_least(engine.version, HAS_CDI):
        raise UnsupportedHost(
            f"docker {engine.version} has no CDI",
            evidence="CDI came with docker 25.0, as features.cdi",
            remedy="leave out --cdi, or upgrade docker",
        )
    said = (config.get("features") or {}).get("cdi")
    return said is False or (said is None and not at_least(engine.version, CDI_BY_DEFAULT))


def _refuse_other_default(by_flag: str, want: RuntimeSpec) -> None:
    if by_flag != want.handler:
        raise UnsupportedHost(
            f"dockerd is started with --default-runtime={by_flag}",
            evidence="with the same option in daemon.json it would not start: 'specified both as a flag and in the "
            "configuration file'",
            remedy="take the flag out of the unit (systemctl cat docker; /etc/default/docker), or use --no-default",
        )


def _flag(engine: RuntimeFacts, name: str) -> str | None:
    """The value of `--name=value` or `--name value`; of a flag given more than once, all of them, space-separated."""
    flags = engine.flags
    values = [f.partition("=")[2] for f in flags if f.startswith(f"{name}=")]
    values += [after for flag, after in pairwise(flags) if flag == name]
    return " ".join(values) or None


def merged(text: str | None, changes: tuple[tuple[Keys, object], ...]) -> str:
    """`text` with the changes made; without its byte order mark, on which docker 20.10 exits."""
    if not changes:
        return text or ""
    body = (text or "").removeprefix(jsontext.BOM)
    if not body.strip(" \t\r\n"):
        body = "{}\n"
    for keys, value in changes:
        body = jsontext.put(body, keys, value)
    return body


def neutral(edit: Edit, old: str) -> str:
    """The old file, with the old default said aloud and, where it listed no runtimes, an empty list of them."""
    before = edit.before or ""
    config = jsontext.load(edit.path, before)
    changes: list[tuple[Keys, object]] = []
    if config.get("default-runtime") is None:
        changes.append((("default-runtime",), old))
    if config.get("runtimes") is None and old == "runc":
        changes.append((("runtimes",), {}))
    return merged(before, tuple(changes))


def said(engine: RuntimeFacts, config: Mapping[str, Any], keys: Keys, value: object) -> str:
    name, before = ".".join(keys), _at(config, keys)
    if keys == ("default-runtime",):
        old = before or engine.effective_default or "runc"
        # dockerd keeps a default that left its file: then the file catches up, and nothing changes hands.
        return f"{name} {old} → {value}" if old != value else f"+ {name} {value}"
    return f"+ {name}" if before is None else f"{name} {json.dumps(before)} → {json.dumps(value)}"


def _at(config: Mapping[str, Any], keys: Keys) -> Any:
    value: Any = config
    for key in keys:
        if not isinstance(value, dict) or value.get(key) is None:
            return None
        value = value[key]
    return value


def _kind(value: object) -> str:
    kinds = {bool: "true or false", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")
