"""daemon.json: what a spec asks for that the file does not set yet, and the file with that merged in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from gpunode.catalog.versions import first_with
from gpunode.editing import json_text
from gpunode.engines.base import Edit
from gpunode.engines.docker.validate import at, entry_key
from gpunode.engines.handler import program
from gpunode.errors import UnsupportedHost
from gpunode.foreign import BOM, read_json
from gpunode.model.facts import RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.model.versions import at_least
from gpunode.remedy import Remedy, RepairAction
from gpunode.resources import render

Keys = tuple[str, ...]


def missing(engine: RuntimeFacts, want: RuntimeSpec, config: Mapping[str, Any]) -> Iterator[tuple[Keys, object]]:
    """(keys, value) of everything the fragment asks for that the file does not set yet."""
    cdi = want.cdi and _must_say_cdi(engine, config)
    text = render("engines/docker.json.j2", handler=want.handler, path=want.program, default=want.default, cdi=cdi)
    fragment: dict[str, Any] = read_json(text)
    default_by_flag = _flag(engine, "--default-runtime")
    if want.default and default_by_flag:
        _refuse_other_default(default_by_flag, want)
        del fragment["default-runtime"]
    handler = (config.get("runtimes") or {}).get(want.handler)
    if handler is not None:
        yield from _runtime_changes(engine, handler, want)
    if handler is not None or binary(engine, want, config) == _path_by_flag(engine, want):
        del fragment["runtimes"]
    for keys, value in _leaves(fragment):
        if at(config, keys) != value:
            yield keys, value


def _runtime_changes(
    engine: RuntimeFacts, handler: Mapping[str, Any], want: RuntimeSpec
) -> Iterator[tuple[Keys, object]]:
    """An entry that is there keeps its args, and its path as far as the rule of all engines lets it."""
    keys = binary_keys(handler, want.handler)
    there = at({"runtimes": {want.handler: handler}}, keys)
    path = program(want, there, engine.missing_binaries)
    if path != there:
        yield keys, path


def binary(engine: RuntimeFacts, want: RuntimeSpec, config: Mapping[str, Any]) -> str:
    """The executable that the handler runs once the changes are made."""
    handler = at(config, ("runtimes", want.handler)) or {}
    there = at(config, binary_keys(handler, want.handler)) or _path_by_flag(engine, want)
    return program(want, there, engine.missing_binaries)


def binary_keys(handler: Mapping[str, Any], name: str) -> Keys:
    """Where an entry of `runtimes` names its executable, in the entry's own spelling."""
    if handler.get(entry_key(handler, "runtimeType")):
        return "runtimes", name, entry_key(handler, "options"), "BinaryName"
    return "runtimes", name, entry_key(handler, "path")


def _leaves(fragment: Mapping[str, Any]) -> Iterator[tuple[Keys, object]]:
    for key, value in fragment.items():
        if isinstance(value, dict):
            # One handler is one value: it is added whole or not at all.
            yield from (((key, name), inner) for name, inner in value.items())
        else:
            yield (key,), value


def _must_say_cdi(engine: RuntimeFacts, config: Mapping[str, Any]) -> bool:
    by_flag = _flag(engine, "--feature")
    if by_flag:
        if "cdi=true" in by_flag.split():
            return False
        raise UnsupportedHost(
            f"dockerd is started with --feature {by_flag}",
            evidence="with features in daemon.json as well it would not start: 'specified both as a flag and in the "
            "configuration file'",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                "add --feature cdi=true to the unit (systemctl cat docker; /etc/default/docker), or leave out --cdi",
            ),
        )
    if engine.version is not None and not at_least(engine.version, first_with("docker", "cdi")):
        raise UnsupportedHost(
            f"docker {engine.version} has no CDI",
            evidence="CDI came with docker 25.0, as features.cdi",
            remedy=Remedy(RepairAction.UPGRADE, "leave out --cdi, or upgrade docker"),
        )
    _refuse_unseen_cdi(engine, config)
    features = config.get("features") or {}
    by_default = at_least(engine.version, first_with("docker", "cdi-by-default"))
    # A null switches it off too, also where it is on by default.
    return features.get("cdi") is not True and ("cdi" in features or not by_default)


def _refuse_unseen_cdi(engine: RuntimeFacts, config: Mapping[str, Any]) -> None:
    """A rootless dockerd has links in the places of /etc/cdi and /var/run/cdi, and does not follow them."""
    elsewhere = "cdi-spec-dirs" in config or _flag(engine, "--cdi-spec-dir")
    if not engine.user or elsewhere or engine.version is None:
        return
    if not at_least(engine.version, first_with("docker", "rootless-cdi")):
        raise UnsupportedHost(
            f"{engine.label} {engine.version} would not find a CDI specification",
            evidence="before docker 27.4 rootlesskit hides /etc/cdi and /var/run/cdi from dockerd (moby/moby#48541)",
            remedy=Remedy(
                RepairAction.UPGRADE,
                "leave out --cdi (its containers get GPUs by the runtime and --gpus), upgrade docker, or let it name "
                "a directory of specifications in cdi-spec-dirs of daemon.json",
            ),
        )


def _refuse_other_default(by_flag: str, want: RuntimeSpec) -> None:
    if by_flag != want.handler:
        raise UnsupportedHost(
            f"dockerd is started with --default-runtime={by_flag}",
            evidence="with the same option in daemon.json it would not start: 'specified both as a flag and in the "
            "configuration file'",
            remedy=Remedy(
                RepairAction.CONFIGURE,
                "take the flag out of the unit (systemctl cat docker; /etc/default/docker), or use --no-default",
            ),
        )


def _path_by_flag(engine: RuntimeFacts, want: RuntimeSpec) -> str | None:
    """The handler's program where dockerd is started with --add-runtime HANDLER=PATH; daemon.json takes precedence."""
    pairs = (value.partition("=") for value in (_flag(engine, "--add-runtime") or "").split())
    return next((path for name, _, path in pairs if name == want.handler), None)


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
    body = (text or "").removeprefix(BOM)
    if body.strip(" \t\r\n") in ("", "null"):
        body = "{}\n"
    for keys, value in changes:
        body = json_text.put(body, keys, value)
    return body


def neutral(edit: Edit, old: str) -> str:
    """The old file, with the old default written out and, where it listed no runtimes, an empty list of them."""
    before = edit.before or ""
    config = json_text.load(edit.path, before)
    changes: list[tuple[Keys, object]] = []
    if config.get("default-runtime") is None:
        changes.append((("default-runtime",), old))
    if config.get("runtimes") is None and old == "runc":
        changes.append((("runtimes",), {}))
    return merged(before, tuple(changes))


def removed(
    text: str, handler: str, previous_default: str | None, *, before: str | None = None, path: str = "daemon.json"
) -> str:
    """`text` without what gpunode wrote into it, whatever else was written since; every other byte is unchanged.

    `previous_default`: what the file named before, None where it named none. `before`: the file's text then ("" where
    there was no file); with it features.cdi and what an entry of the user's had are restored too, and a file that only
    gpunode touched becomes `before` again, byte for byte. A default that is no longer `handler` is not gpunode's.
    Raises ConfigFileError (`path`, line and column) for a text that is not a JSON object.
    """
    config, old = json_text.load(path, text), json_text.load(path, before or "")
    if not config:
        return text
    text = without_default(text, handler, previous_default, before=before, path=path)
    config = json_text.load(path, text)
    if before is not None or at(config, ("default-runtime",)) != handler:
        text = _restored(text, before, _own_keys(old, handler))
    if before is not None and at(config, ("features", "cdi")) is True and at(old, ("features", "cdi")) is not True:
        text = _restored(text, before, ("features", "cdi"))
    has_lost_mark = (before or "").startswith(BOM) and not text.startswith(BOM)
    return (BOM if has_lost_mark else "") + text


def without_default(
    text: str, handler: str, previous_default: str | None, *, before: str | None = None, path: str = "daemon.json"
) -> str:
    """`text` with the default as it was before; the handler is still among the runtimes. As `removed` otherwise."""
    if at(json_text.load(path, text), ("default-runtime",)) != handler or previous_default == handler:
        return text
    return _restored(text, before, ("default-runtime",), previous_default)


def data_root(text: str, engine: RuntimeFacts) -> str:
    """Where dockerd keeps its containers, of one that cannot be asked; whatever else its file's `text` holds."""
    found = re.search(r'"(?:data-root|graph)"\s*:\s*"([^"\\]+)"', text)
    home = engine.config_path.removesuffix("/.config/docker/daemon.json")
    own = f"{home}/.local/share/docker" if engine.user else "/var/lib/docker"
    return _flag(engine, "--data-root") or (found[1] if found else own)


def _own_keys(old: Mapping[str, Any], handler: str) -> Keys:
    """The keys of what gpunode wrote for the handler: all of it, or the path in an entry that was there."""
    entry = at(old, ("runtimes", handler))
    return ("runtimes", handler) if entry is None else binary_keys(entry, handler)


def _restored(text: str, before: str | None, keys: Keys, value: str | None = None) -> str:
    """`text` with the value at `keys` as `before` spells it, else `value`, else without that member."""
    spelled = _spelling(before or "", keys)
    if spelled is None and value is None:
        return _emptied(json_text.cut(text, keys), before, keys[:-1])
    here = json_text.span(text, keys)
    spelled = json.dumps(value) if spelled is None else spelled
    return text[: here[0]] + spelled + text[here[1] :] if here else text


def _emptied(text: str, before: str | None, keys: Keys) -> str:
    """`text`; the object at `keys`, if nothing is left in it, gone too or spelled as `before` spelled nothing."""
    here, spelled = json_text.span(text, keys), _spelling(before or "", keys)
    if here is None or text[slice(*here)] != "{}":
        return text
    if spelled is not None and "".join(spelled.split()) not in ("{}", "null"):
        return text  # what else stood in it was taken out by somebody else
    if not keys:
        return text if before is None else before
    if spelled is None:
        return _emptied(json_text.cut(text, keys), before, keys[:-1])
    return text[: here[0]] + spelled + text[here[1] :]


def _spelling(text: str, keys: Keys) -> str | None:
    """How `text` spells the value at `keys`; None: it has none."""
    found = json_text.span(text, keys)
    return text[slice(*found)] if found else None


def described(engine: RuntimeFacts, config: Mapping[str, Any], keys: Keys, value: object) -> str:
    name, before = ".".join(keys), at(config, keys)
    if keys == ("default-runtime",):
        old = before or engine.effective_default or "runc"
        # dockerd keeps a default that left its file: then the file catches up, and the default is the same.
        return f"{name} {old} → {value}" if old != value else f"+ {name} {value}"
    return f"+ {name}" if before is None else f"{name} {json.dumps(before)} → {json.dumps(value)}"
