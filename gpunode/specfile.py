"""YAML -> Spec, and flags -> Spec by the same table. Every fault in a file is reported together, with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_file, read_yaml
from gpunode.masking import masked
from gpunode.model.spec import (
    HANDLER_FORMS,
    HANDLER_NAME,
    TOOLKIT_MODES,
    TOOLKIT_SETTINGS,
    DriverRequest,
    DriverSource,
    Flavour,
    RebootPolicy,
    Spec,
    ToolkitRequest,
    parse_cuda,
    parse_fingerprint,
    parse_mig,
    parse_mirror,
    parse_only,
    parse_runtimes,
)

LONGEST = 256 * 1024  # bytes; a spec is a page of text, and YAML of any size can be made slow to read


@dataclass(frozen=True)
class Key:
    """One key of the spec file, which is one flag as well. `parse` raises UsageError that begins with the flag."""

    flag: str
    field: str  # where it goes in Spec; "runtime.cdi" is a field of a field
    parse: Callable[[str], Any]  # the field's own type; Spec's fields differ
    many: bool = False  # a YAML list is as good as text with commas


@dataclass(frozen=True)
class _Entry:
    """One `key: value` of the file as text, before it is checked."""

    line: int
    key: str
    text: str | None  # None: no value
    shape: Literal["scalar", "list", "mapping"]


def load_spec(path: Path) -> Spec:
    """The spec in a YAML file. Raises UsageError that lists every fault with its line and what is allowed."""
    try:
        raw = read_file(path, LONGEST)
    except OSError as error:
        raise UsageError(
            f"the spec {path} cannot be read", evidence=str(error.strerror), remedy="name a YAML file with --spec"
        ) from error
    if len(raw) > LONGEST:
        raise UsageError(f"the spec {path} is over {LONGEST} bytes", remedy="name a YAML file with --spec")
    return parse_spec(raw.decode("utf-8", "surrogateescape"), str(path))


def parse_spec(text: str, name: str = "spec") -> Spec:
    """A spec's text as a Spec; `name` is what messages call it."""
    spec, faults, seen = Spec(), [], dict[str, int]()
    for entry in _entries(text, name):
        try:
            if entry.key in seen:
                raise UsageError(f"{entry.key} is there twice; the first is on line {seen[entry.key]}")
            seen[entry.key] = entry.line
            spec = put(spec, entry.key, _value(entry))
        except UsageError as fault:
            faults.append(f"line {entry.line}: {_words(entry.key, fault)}")
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UsageError(f"{name}: {count}", evidence="\n".join(faults), remedy=f"correct {name}; nothing was touched")
    return spec


def put_all(spec: Spec, texts: Mapping[str, str]) -> Spec:
    """`spec` with flags over it: {"driver": "580"}. Raises one UsageError for all that are wrong."""
    faults = []
    for key, text in texts.items():
        try:
            spec = put(spec, key, text)
        except UsageError as fault:
            faults.append(fault)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise UsageError(
            f"{len(faults)} options are wrong",
            evidence="\n".join(f"{f.problem}: {f.evidence}" for f in faults),
            remedy="correct them; nothing was touched",
        )
    return spec


def put(spec: Spec, key: str, text: str) -> Spec:
    """`spec` with one key set from its text. Raises UsageError for an unknown key or value."""
    if key not in KEYS:
        raise UsageError(f"{key} is not a key of a spec", evidence=f"{meant(key, KEYS)}the keys are {', '.join(KEYS)}")
    value: Any = KEYS[key].parse(text)
    outer, _, inner = KEYS[key].field.partition(".")
    if inner:
        value = replace(getattr(spec, outer), **{inner: value})
    return replace(spec, **{outer: value})


def _words(key: str, fault: UsageError) -> str:
    flag = KEYS[key].flag if key in KEYS else ""
    problem = fault.problem.removeprefix(f"{flag} ") if flag else fault.problem
    said = problem if problem.startswith(key) else f"{key}: {problem}"
    return f"{said}; {fault.evidence}" if fault.evidence else said


def _value(entry: _Entry) -> str:
    known = KEYS.get(entry.key)
    if known is None:
        return ""
    if entry.shape == "list" and not known.many:
        raise UsageError("one value is wanted here, not a list")
    if entry.shape == "mapping":
        raise UsageError("one value is wanted here, not a mapping")
    if entry.text is None:
        raise UsageError("there is no value", evidence="leave the key out to keep gpunode's choice")
    return entry.text


def _entries(text: str, name: str) -> Iterator[_Entry]:
    """Key, text and line of each entry. Scalars keep their spelling: to YAML 580.10 is the number 580.1."""
    import yaml

    try:
        root = read_yaml(text)
    except NotRead as fault:
        raise UsageError(
            f"{name} is not YAML",
            evidence=f"line {fault.line}, column {fault.column}: {fault.what}",
            remedy=f"correct {name}; nothing was touched",
        ) from fault
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(
            f"{name} is not a mapping", evidence="a spec is lines of `key: value`", remedy="see examples/specs/"
        )
    yield from _pairs(root, "")


def _pairs(mapping: object, prefix: str) -> Iterator[_Entry]:
    import yaml

    assert isinstance(mapping, yaml.MappingNode)
    for key, value in mapping.value:
        line = key.start_mark.line + 1
        name = prefix + (key.value if isinstance(key, yaml.ScalarNode) else "?")
        if isinstance(value, yaml.MappingNode) and not prefix and any(k.startswith(f"{name}.") for k in KEYS):
            yield from _pairs(value, f"{name}.")
        elif isinstance(value, yaml.SequenceNode):
            items = [v.value if isinstance(v, yaml.ScalarNode) else "?" for v in value.value]
            yield _Entry(line, name, ",".join(items), "list")
        elif isinstance(value, yaml.ScalarNode):
            null = value.tag == "tag:yaml.org,2002:null"
            yield _Entry(line, name, None if null else str(value.value), "scalar")
        else:
            yield _Entry(line, name, None, "mapping")


def _choice(flag: str, kind: type[Enum] | Iterable[str]) -> Callable[[str], object]:
    values = {str(v.value): v for v in kind} if isinstance(kind, type) else {v: v for v in kind}

    def parse(text: str) -> object:
        if (word := text.strip().lower()) in values:
            return values[word]
        raise UsageError(
            f"{flag} {text!r} is not a choice",
            evidence=f"{meant(text, values)}the choices are {', '.join(values)}",
            remedy=f"choose one of them with {flag}",
        )

    return parse


def _yes_no(flag: str) -> Callable[[str], bool]:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

    def parse(text: str) -> bool:
        if (word := text.strip().lower()) in words:
            return words[word]
        said = f"{flag} {text!r} is neither true nor false"
        raise UsageError(said, evidence=f"{meant(text, words)}the choices are true, false")

    return parse


def _matching(flag: str, pattern: str, forms: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if re.fullmatch(pattern, text.strip()):
            return text.strip()
        raise UsageError(f"{flag} {masked(text)!r} is not of the right form", evidence=f"it is {forms}")

    return parse


def _proxy(text: str) -> str:
    """A proxy's address. The message does not quote it: a password may be anywhere in a mistyped one."""
    word = text.strip()
    if "@" in word:
        raise UsageError(
            "--proxy must not hold a user or a password",
            evidence="arguments are for every user of a machine to read, and logs show the environment of commands",
            remedy="write it into the package manager's own configuration (apt.conf.d, dnf.conf) on the host",
        )
    if not re.fullmatch(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:/[^\s?#:]*)?", word):
        raise UsageError(
            "--proxy is not of the right form", evidence="it is an http:// or https:// URL: http://proxy.example:3128"
        )
    return word


def _count(flag: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,4}", text.strip()):
            return int(text)
        raise UsageError(f"{flag} {text!r} is not a count", evidence="it is a whole number, 0 to 9999")

    return parse


def _runtimes(text: str) -> tuple[str, ...] | None:
    from gpunode.engines.registry import ENGINES  # here, since --help names no engine and should load none

    return parse_runtimes(text, {name: one.labels for name, one in ENGINES.items()})


def _fingerprints(text: str) -> tuple[str, ...]:
    return tuple(parse_fingerprint(part) for part in text.split(",") if part.strip())


def _names(flag: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(","))
        if all(re.fullmatch(r"[\w./+-]+", name) for name in names):
            return names
        raise UsageError(
            f"{flag} {text!r} is not a list of programs", evidence="they are names or paths with commas: crun,runc"
        )

    return parse


def _log_path(flag: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() == "off":
            return ""
        return _matching(flag, r"/\S+", "an absolute path on the host, or off")(text)

    return parse


def _toolkit_config() -> dict[str, Key]:
    """One key for each setting of the toolkit's config.toml; as a flag they are values of --ctk-set."""
    parse: dict[str, Callable[[str], Callable[[str], Any]]] = {
        "mode": lambda flag: _choice(flag, TOOLKIT_MODES),
        "runtimes": _names,
        "log_level": lambda flag: _choice(flag, ("debug", "info", "warning", "error")),
        "runtime_debug": _log_path,
        "cli_debug": _log_path,
    }
    keys = {}
    for field, names in TOOLKIT_SETTINGS.items():
        flag = f"--ctk-set {'.'.join(names)}"
        kind = parse.get(field, _yes_no)
        keys[f"toolkit_config.{field}"] = Key(flag, f"toolkit_config.{field}", kind(flag), many=field == "runtimes")
    return keys


KEYS: dict[str, Key] = {
    "driver": Key("--driver", "driver", DriverRequest.parse),
    "flavour": Key("--flavour", "flavour", _choice("--flavour", Flavour)),
    "driver_source": Key("--driver-source", "driver_source", _choice("--driver-source", DriverSource)),
    "toolkit": Key("--toolkit", "toolkit", ToolkitRequest.parse),
    "toolkit_channel": Key(
        "--toolkit-channel", "toolkit_channel", _choice("--toolkit-channel", ("stable", "experimental"))
    ),
    "runtime": Key("--runtime", "runtimes", _runtimes, many=True),
    "default": Key("--default", "runtime.default", _yes_no("--default")),
    "cdi": Key("--cdi", "runtime.cdi", _yes_no("--cdi")),
    "handler": Key("--handler", "runtime.handler", _matching("--handler", HANDLER_NAME, HANDLER_FORMS)),
    "runtime_path": Key(
        "--runtime-path", "runtime.path", _matching("--runtime-path", r"/\S+", "an absolute path on the host")
    ),
    "only": Key("--only", "only", parse_only, many=True),
    "reboot": Key("--reboot", "reboot", _choice("--reboot", RebootPolicy)),
    "hold": Key("--hold", "hold", _yes_no("--hold")),
    "cuda": Key("--cuda", "cuda", parse_cuda),
    "mirror": Key("--mirror", "mirror", parse_mirror),
    "trust_keys": Key("--trust-key", "trust_keys", _fingerprints, many=True),
    "proxy": Key("--proxy", "proxy", _proxy),
    "allow_no_gpu": Key("--allow-no-gpu", "allow_no_gpu", _yes_no("--allow-no-gpu")),
    "allow_gpu_in_use": Key("--allow-gpu-in-use", "allow_gpu_in_use", _yes_no("--allow-gpu-in-use")),
    "allow_container_restart": Key(
        "--allow-container-restart", "allow_container_restart", _yes_no("--allow-container-restart")
    ),
    "mig": Key("--mig", "mig", parse_mig, many=True),
    "expect.gpus": Key("--expect-gpus", "expect.gpus", _count("--expect-gpus")),
    **_toolkit_config(),
}


def spec_text(spec: Spec) -> str:
    """A spec as a file that `load_spec` reads back to the same Spec. It may hold a proxy's password: write it 0600."""
    lines = []
    for key, known in KEYS.items():
        outer, _, inner = known.field.partition(".")
        value = getattr(getattr(spec, outer), inner) if inner else getattr(spec, outer)
        if value != _default(outer, inner):
            lines.append(f"{_yaml_key(key)}{json.dumps(_text(value))}{'}' if '.' in key else ''}\n")
    return "".join(lines)


def _default(outer: str, inner: str) -> object:
    return getattr(getattr(Spec(), outer), inner) if inner else getattr(Spec(), outer)


def _yaml_key(key: str) -> str:
    outer, dot, inner = key.partition(".")
    return f"{outer}: {{{inner}: " if dot else f"{key}: "


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"  # no engine at all; the other lists are never empty when they differ
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, ToolkitRequest):
        return value.version or value.kind
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) or "off"  # a log that is switched off; no other text is ever empty
