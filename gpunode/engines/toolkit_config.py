"""nvidia-container-runtime's own config.toml: what it says, and the settings people ask for, put where it has room.

The shipped file holds many settings as comments (`#no-cgroups = false`): a setting that is asked for goes on the line
below its comment, in the right table, and every other line is unchanged.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpunode.advice import named
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.editing.unread import refuse_unread
from gpunode.engines.base import Edit, Rewrite
from gpunode.engines.provenance import at, line_of_keys
from gpunode.errors import ConfigFileError
from gpunode.model.files import FileFacts
from gpunode.model.spec import TOOLKIT_SETTINGS, ToolkitConfig
from gpunode.regex import regex

HEADER = regex(r"^\s*\[\s*([\w.-]+)\s*\]\s*(#.*)?$")
Change = tuple[tuple[str, ...], object, object]  # keys, what the file says, what it should say; None: nothing


def rewrite(file: FileFacts, want: ToolkitConfig) -> Rewrite:
    """The file with the wanted settings; comments, order and all other settings are unchanged.

    An absent file is made with these settings only: the toolkit takes its defaults for the rest.
    Raises ConfigFileError (line and column) for a file that does not parse or cannot be edited safely.
    """
    refuse_unread(file.path, file.unread)
    text = file.text or ""
    try:
        plain = toml_text.load(file.path, text)
        _refuse_wrong_types(file.path, plain)
        changes = tuple(_changes(plain, want))
        after = _edited(file.path, text, plain, changes)
    except ConfigFileError as fault:
        raise ConfigFileError(
            fault.problem,
            evidence="the file was not touched",
            remedy=f"correct {named(file.path)} there; nvidia-ctk config default prints a sane one",
        ) from None
    described = tuple(_described(*change) for change in changes)
    return Rewrite((Edit(file.path, file.text, after),), described, tuple(_notes(want)))


def setting(file: FileFacts, name: str) -> str | None:
    """The value at a dotted `name` ("true" for true), in whichever way TOML spells it.

    None where it is not set, and for what is no TOML: the toolkit stops at that (ctk.config), and nothing is set by it.
    """
    value = _value(file, name)
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def texts(file: FileFacts, name: str) -> tuple[str, ...] | None:
    """The list of texts at a dotted `name`; None where it is not set, as above. () for what is no such list."""
    value = _value(file, name)
    if value is None:
        return None
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else ()


def line_of(file: FileFacts, name: str) -> int:
    """The line, counted from 1, that sets it."""
    return line_of_keys(file.text or "", tuple(name.split(".")))


def _value(file: FileFacts, name: str) -> Any:
    if not file.text:
        return None
    try:
        return at(toml_text.read(file.path, file.text), tuple(name.split(".")))
    except ConfigFileError:
        return None


def missing(file: FileFacts, want: ToolkitConfig) -> bool:
    """Whether anything is wanted at all that `file` does not set."""
    return want != ToolkitConfig() and rewrite(file, want).changed


def _changes(plain: Plain, want: ToolkitConfig) -> Iterator[Change]:
    for field, keys in TOOLKIT_SETTINGS.items():
        value = getattr(want, field)
        if value is None:
            continue
        value = list(value) if isinstance(value, tuple) else value
        have = _at(plain, keys)
        if value == "" and have is not None:
            yield keys, have, None
        elif value != "" and (have != value or type(have) is not type(value)):
            yield keys, have, value


def _edited(path: str, text: str, plain: Plain, changes: tuple[Change, ...]) -> str:
    wanted, body = copy.deepcopy(plain), text
    for keys, have, value in changes:
        table = wanted if len(keys) == 1 else wanted.setdefault(keys[0], {})
        if value is None:
            del table[keys[-1]]
            continue
        table[keys[-1]] = value
        if have is None:
            body = _below_its_comment(path, body, keys, value)
    tables = sorted({keys[0] for keys, _, _ in changes if len(keys) > 1})
    return toml_text.rewrite(path, body, wanted, tuple(tables[:1]))


def _below_its_comment(path: str, text: str, keys: tuple[str, ...], value: object) -> str:
    """`text` with the setting on the line below its commented-out default; unchanged where there is none.

    Believed only when it reads back as the same file with that one setting more.
    """
    here: tuple[str, ...] = ()
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        header = HEADER.match(line)
        here = tuple(header[1].split(".")) if header else here
        comment = re.match(rf"^(\s*)#\s*{re.escape(keys[-1])}\s*=", line)
        if not comment or here != keys[:-1]:
            continue
        end = "\r\n" if line.endswith("\r\n") else "\n"
        first = line if line.endswith("\n") else line + end
        tried = "".join(
            [*lines[:number], first, f"{comment[1]}{keys[-1]} = {_spelled(value)}{end}", *lines[number + 1 :]]
        )
        return tried if _adds_only(path, text, tried, keys, value) else text
    return text


def _adds_only(path: str, text: str, tried: str, keys: tuple[str, ...], value: object) -> bool:
    wanted = toml_text.load(path, text)
    (wanted if len(keys) == 1 else wanted.setdefault(keys[0], {}))[keys[-1]] = value
    try:
        return toml_text.load(path, tried) == wanted
    except ConfigFileError:  # the line stood inside a text of several lines: it was no comment
        return False


def _spelled(value: object) -> str:
    """Booleans, strings and lists of strings: JSON spells them as TOML does."""
    return json.dumps(value, ensure_ascii=False)


def _refuse_wrong_types(path: str, plain: Plain) -> None:
    for table in ("nvidia-container-cli", "nvidia-container-runtime"):
        if not isinstance(plain.get(table, {}), dict):
            raise ConfigFileError(f"{path}: {table} is {plain[table]!r}, and the toolkit wants a table")


def _at(plain: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return plain.get(keys[0]) if len(keys) == 1 else plain.get(keys[0], {}).get(keys[1])


def _described(keys: tuple[str, ...], have: object, value: object) -> str:
    name = ".".join(keys)
    if value is None:
        return f"− {name}"
    return f"+ {name} = {_spelled(value)}" if have is None else f"{name} {_spelled(have)} → {_spelled(value)}"


def _notes(want: ToolkitConfig) -> Iterator[str]:
    if want.no_cgroups:
        yield (
            "no-cgroups applies to every engine of this host, and is meant for rootless ones: containers of a dockerd "
            "or containerd that runs as root get no device rules with it, and so no GPU"
        )
    if want.accept_envvar_when_unprivileged is False and not want.accept_volume_mounts:
        yield (
            "unprivileged containers then get GPUs by CDI only; a device plugin needs "
            "DEVICE_LIST_STRATEGY=volume-mounts with accept-nvidia-visible-devices-as-volume-mounts, or cdi-cri"
        )
    if want.mode == "cdi":
        yield "mode cdi takes GPUs from the CDI specifications only"
