"""Values -> what JSON can express: snake_case keys, enums by value, sets sorted, an action by its kind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from gpunode.masking import MASK, form_of, is_secret, mask_argv, masked
from gpunode.model.action import PutFile, Reboot, RemoveFile, Run
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.plan import Plan
from gpunode.model.report import Finding
from gpunode.model.spec import DriverRequest, Spec, ToolkitRequest
from gpunode.remedy import Remedy
from gpunode.render.clean import clean_json
from gpunode.render.indented import Written, indented
from gpunode.render.wording import mask_url

KINDS: dict[str, type] = {"run": Run, "put_file": PutFile, "remove_file": RemoveFile, "reboot": Reboot}
KIND_OF = {kind: name for name, kind in KINDS.items()}
# A file's text can contain registry logins and proxy passwords; a report needs its hash only.
_LEFT_OUT = {
    FileFacts: {"text"},
    RuntimeFacts: {"merged_config"},
    Remedy: {"parts"},
    Finding: {"steps", "otherwise", "short", "decision"},
}
# Hashes of real bytes, by which a short password could be guessed: only what is applied needs them.
_HASHES = {
    HostFacts: {"stream_sha256"},
    Plan: {"facts_sha256"},
    PutFile: {"expect_sha256"},
    RemoveFile: {"expect_sha256"},
}
_RENAMED = {"seconds": "seconds_s"}
# Properties that are written as well, since every reader would work them out.
SAID_TOO: dict[type, tuple[str, ...]] = {HostFacts: ("gpus",), Remedy: ("command", "text")}


def to_data(value: Any, *, secrets: bool = False) -> Any:
    """`value` in dicts, lists, strings and numbers. `secrets`: not masked, for a plan that is to be applied."""
    kind = type(value)  # what most values are comes first: a fleet's report has thousands of them a host
    if kind is str:
        return value if secrets else _shown(value)
    if kind is bool or kind is int or value is None or kind is Written:
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return value if secrets else masked(value)
    if isinstance(value, (DriverRequest, ToolkitRequest)):
        return request_text(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value, secrets)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): _under(str(k), v, secrets) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(to_data(v, secrets=secrets) for v in value)
    if isinstance(value, (tuple, list)):
        return [to_data(v, secrets=secrets) for v in value]
    return value


def _shown(text: str) -> str:
    """Masked. A short text is mostly one that every host of a fleet has."""
    return _masked_short(text) if len(text) <= _SHORT_CHARS else masked(text)


_SHORT_CHARS = 300
_masked_short = lru_cache(maxsize=4096)(masked)


def _under(name: str, value: Any, secrets: bool) -> Any:
    """What stands behind a name that somebody else chose: an environment variable, a parameter of a module."""
    return MASK if not secrets and isinstance(value, str) and is_secret(name) else to_data(value, secrets=secrets)


def _fields(value: Any, secrets: bool) -> dict[str, Any]:
    if isinstance(value, Spec) and value.proxy:
        value = replace(value, proxy=mask_url(value.proxy))  # a saved plan and a report contain no password
    if not secrets:
        value = _masked(value)
    out: dict[str, Any] = {"kind": KIND_OF[type(value)]} if type(value) in KIND_OF else {}
    for key, name in keys_of(type(value), secrets=secrets).items():
        out[key] = to_data(getattr(value, name), secrets=secrets)
    return out


def keys_of(kind: type, *, secrets: bool = False) -> dict[str, str]:
    """The keys of a dataclass in JSON, in order, each with the attribute that it shows."""
    left_out = _LEFT_OUT.get(kind, set()) | (set() if secrets else _HASHES.get(kind, set()))
    names = [field.name for field in fields(kind) if field.name not in left_out]
    return {_RENAMED.get(name, name): name for name in (*names, *SAID_TOO.get(kind, ()))}


def _masked(value: Any) -> Any:
    """Command lines and files by their form; other texts show theirs themselves."""
    match value:
        case Run():
            env = tuple((name, MASK if is_secret(name) else text) for name, text in value.env)
            return replace(value, argv=mask_argv(value.argv), env=env)
        case FileFacts(text=str() as text) if (hidden := masked(text, form_of(value.path))) != text:
            return replace(value, sha256=hashlib.sha256(hidden.encode("utf-8", "surrogateescape")).hexdigest())
        case PutFile():
            return replace(value, text=masked(value.text, form_of(value.path)))
        case RuntimeFacts():
            # Of a daemon that does not run they are from systemd, parted at blanks.
            flags, embedded_in = (
                mask_argv(value.flags, unquoted=True),
                mask_argv(value.distribution_flags, unquoted=True),
            )
            return replace(value, flags=flags, distribution_flags=embedded_in)
    return value


def request_text(request: DriverRequest | ToolkitRequest) -> str:
    """The request as a person types it."""
    return str(request) if isinstance(request, DriverRequest) else request.version or request.kind


def dumps(value: Any, *, indent: int | None = 2, secrets: bool = False) -> str:
    """JSON in UTF-8, with secrets only where they are asked for. What a terminal obeys, and bytes of a host that are
    not UTF-8 (surrogates), are escaped.
    """
    form = to_data(value, secrets=secrets)
    return clean_json(
        json.dumps(form, ensure_ascii=False, allow_nan=False) if indent is None else indented(form, " " * indent)
    )


def written(value: Any, line: str) -> Written:
    """`value` as `dumps` has it, where it stands deeper in a document; `line`: a newline and its indentation there."""
    return Written(clean_json(indented(to_data(value), "  ", line)))


def listed(head: Mapping[str, Any], name: str, items: Iterable[str], tail: Mapping[str, Any]) -> Iterator[str]:
    """A document of which one list is long, in pieces: what is before it, each item (`written` at four blanks) when it
    is asked for, and what follows it. Together they are `dumps({**head, name: [...], **tail})` and a newline.
    """
    keys = "".join(f"  {_pair(key, value)},\n" for key, value in head.items())
    begin, between = f"{{\n{keys}  {json.dumps(name)}: [", "\n    "
    for item in items:
        yield f"{begin}{between}{item}"
        begin, between = "", ",\n    "
    end = "]" if begin else "\n  ]"
    yield f"{begin}{end}" + "".join(f",\n  {_pair(key, value)}" for key, value in tail.items()) + "\n}\n"


def _pair(key: str, value: Any) -> str:
    return f"{json.dumps(key)}: {written(value, '  ')}"
