"""Docker: daemon.json, applied by a reload that touches no container, proven by the daemon's own /info."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gpunode.errors import ConfigFileError, UnsupportedHost
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.plan import Action, PutFile, RemoveFile, Run
from gpunode.model.spec import RuntimeSpec
from gpunode.resources import render
from gpunode.runtimes import jsontext, scripts
from gpunode.runtimes.base import Rewrite
from gpunode.runtimes.versions import at_least

UNITS = ("docker.service", "docker.socket")
# `dockerd --validate` came with 23.0; 20.10 answers "unknown flag".
HAS_VALIDATE = (23, 0)
# CDI: a feature flag from 25.0, on by default from 28.2 (docker's release notes).
HAS_CDI, CDI_BY_DEFAULT = (25, 0), (28, 2)
Keys = tuple[str, ...]


class Docker:
    """dockerd as the distributions and Docker's own packages install it."""

    name = "docker"
    title = "reload, no container restarts"

    def rewrite(self, host: HostFacts, engine: RuntimeFacts, want: RuntimeSpec) -> Rewrite:
        _refuse_snap(engine)
        path = engine.config_path
        file = host.file(path)
        if file.unread:
            raise ConfigFileError(f"{path} cannot be read: {file.unread}", remedy="run gpunode as root (sudo)")
        config = jsontext.load(path, file.text or "")
        _refuse_wrong_types(path, file.text or "", config)
        changes = tuple(_changes(engine, want, config))
        notes = ("docker's CDI support is read at start, so it needs a restart to be live",)
        cdi = any(keys == ("features", "cdi") for keys, _ in changes)
        return Rewrite(
            path,
            file.text,
            _merged(file.text, changes),
            tuple(_said(engine, config, keys, value) for keys, value in changes),
            notes if cdi else (),
            needs_restart=cdi,
        )

    def idle(self, host: HostFacts, engine: RuntimeFacts) -> str | None:
        return None

    def validate(self, engine: RuntimeFacts) -> Run | None:
        if not at_least(engine.version, HAS_VALIDATE):
            return None
        argv = (engine.binary or "dockerd", "--validate", "--config-file", "{candidate}", *_flags_that_matter(engine))
        return Run(argv, timeout_s=30)

    def apply(self, engine: RuntimeFacts, *, restart: bool = False) -> tuple[Action, ...]:
        if restart:
            return (scripts.restart(engine.unit, UNITS),)
        # Exit 0 says only that SIGHUP was sent: dockerd keeps its old config when the file is wrong. verify() asks.
        return (Run(("systemctl", "reload", engine.unit), timeout_s=30),)

    def verify(self, engine: RuntimeFacts, want: RuntimeSpec) -> Run:
        return scripts.verify(engine, want.handler if want.default else f"+{want.handler}")

    def undo(self, engine: RuntimeFacts, rewrite: Rewrite, *, restart: bool = False) -> tuple[Action, ...]:
        """A reload with the keys merely gone leaves nvidia as the default (20.10, 26 and 28 alike), so the old
        default is first written out, loaded and seen to be in force; then the old bytes come back."""
        old = engine.effective_default or "runc"
        if restart:
            return (scripts.restart(engine.unit, UNITS), scripts.verify(engine, old))
        if not rewrite.changed:
            return (scripts.revive(engine.unit, UNITS),)
        return (
            scripts.revive(engine.unit, UNITS),
            PutFile(rewrite.path, _neutral(rewrite, old), any_before=True),
            # Any answer will do for these two: the original file must come back whatever the daemon says,
            # and the last action judges.
            Run(("systemctl", "reload", engine.unit), ok=tuple(range(256)), timeout_s=30),
            scripts.verify(engine, old, ok=(0, 1)),
            RemoveFile(rewrite.path)
            if rewrite.before is None
            else PutFile(rewrite.path, rewrite.before, any_before=True),
            scripts.verify(engine, old),
        )


def _refuse_snap(engine: RuntimeFacts) -> None:
    if engine.snap:
        raise UnsupportedHost(
            "docker is installed as a snap",
            evidence=f"{engine.config_path} is confined: its dockerd cannot run the host's nvidia-container-runtime",
            remedy="replace the snap by the distribution's docker.io or Docker's docker-ce, or leave docker out: "
            "--runtime containerd",
        )


def _refuse_wrong_types(path: str, text: str, config: Mapping[str, Any]) -> None:
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


def _changes(engine: RuntimeFacts, want: RuntimeSpec, config: Mapping[str, Any]) -> Iterator[tuple[Keys, object]]:
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


def _flags_that_matter(engine: RuntimeFacts) -> tuple[str, ...]:
    """The daemon's own flags, so that one that clashes with the file is found before the reload.

    Without sockets (`-H fd://` exists only under systemd), the config file's name, and anything unexpanded.
    """
    kept, skip = [], False
    for flag in engine.flags:
        if skip or "$" in flag:
            skip = False
        elif re.fullmatch(r"-H|--host|--config-file", flag):
            skip = True
        elif not re.match(r"-H|--host=|--config-file=", flag):
            kept.append(flag)
    return tuple(kept)


def _merged(text: str | None, changes: tuple[tuple[Keys, object], ...]) -> str:
    """`text` with the changes made; without its byte order mark, on which docker 20.10 exits."""
    if not changes:
        return text or ""
    body = (text or "").removeprefix(jsontext.BOM)
    if not body.strip(" \t\r\n"):
        body = "{}\n"
    for keys, value in changes:
        body = jsontext.put(body, keys, value)
    return body


def _neutral(rewrite: Rewrite, old: str) -> str:
    """The old file, with the old default said aloud and, where it listed no runtimes, an empty list of them."""
    before = rewrite.before or ""
    config = jsontext.load(rewrite.path, before)
    changes: list[tuple[Keys, object]] = []
    if config.get("default-runtime") is None:
        changes.append((("default-runtime",), old))
    if config.get("runtimes") is None and old == "runc":
        changes.append((("runtimes",), {}))
    return _merged(before, tuple(changes))


def _said(engine: RuntimeFacts, config: Mapping[str, Any], keys: Keys, value: object) -> str:
    name, before = ".".join(keys), _at(config, keys)
    if keys == ("default-runtime",):
        return f"{name} {before or engine.effective_default or 'runc'} → {value}"
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
