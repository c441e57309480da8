"""YAML -> Spec, and flags -> Spec by the same table. Every fault in a file is reported together, with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.foreign import NotRead, read_file, read_yaml
from gpunode.masking import masked
from gpunode.model.expectation import FORMS, LISTS
from gpunode.model.rules import MOST, Acknowledgement, Rules, Weight, parse_acknowledgement, parse_weight
from gpunode.model.spec import (
    HANDLER_FORMS,
    HANDLER_NAME,
    TOOLKIT_MODES,
    TOOLKIT_SETTINGS,
    DriverRequest,
    DriverSource,
    Expectation,
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

if TYPE_CHECKING:
    import yaml

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
    node: object = None  # its value as YAML has it


@dataclass(frozen=True)
class SpecFile:
    """A spec file: what is wanted of a host, and how a check weighs what it finds."""

    spec: Spec
    rules: Rules


def load_spec(path: Path) -> Spec:
    """The spec in a YAML file. Raises UsageError that lists every fault with its line and what is allowed."""
    return load_file(path).spec


def load_file(path: Path) -> SpecFile:
    """The same, with what only a check reads."""
    return parse_file(_text_of(path, "spec", "--spec"), str(path))


def _text_of(path: Path, what: str, flag: str) -> str:
    try:
        raw = read_file(path, LONGEST)
    except OSError as error:
        raise UsageError(
            f"the {what} {path} cannot be read", evidence=str(error.strerror), remedy=f"name a YAML file with {flag}"
        ) from error
    if len(raw) > LONGEST:
        raise UsageError(f"the {what} {path} is over {LONGEST} bytes", remedy=f"name a YAML file with {flag}")
    return raw.decode("utf-8", "surrogateescape")


def parse_spec(text: str, name: str = "spec") -> Spec:
    """A spec's text as a Spec; `name` is what messages call it."""
    return parse_file(text, name).spec


def parse_file(text: str, name: str = "spec") -> SpecFile:
    """The same, with what only a check reads. All faults of both are in one UsageError."""
    faults: list[str] = []
    root = _root(text, name)
    rules, others = _rules(root, faults)
    spec = _spec(others, faults)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UsageError(f"{name}: {count}", evidence="\n".join(faults), remedy=f"correct {name}; nothing was touched")
    return SpecFile(spec, rules)


def _spec(entries: Iterable[_Entry], faults: list[str]) -> Spec:
    spec, seen = Spec(), dict[str, int]()
    for entry in entries:
        try:
            if entry.key in seen:
                raise UsageError(f"{entry.key} is there twice; the first is on line {seen[entry.key]}")
            seen[entry.key] = entry.line
            spec = put(spec, entry.key, _value(entry))
        except UsageError as fault:
            faults.append(f"line {entry.line}: {_words(entry.key, fault)}")
    return spec


def _rules(root: yaml.MappingNode | None, faults: list[str]) -> tuple[Rules, list[_Entry]]:
    """What only a check reads, and the entries of everything else, in their order."""
    rules, others = dict[str, Any](), []
    for entry in _pairs(root, "") if root else ():
        if entry.key not in RULES:
            others.append(entry)
            continue
        try:
            if entry.key in rules:
                raise UsageError(f"{entry.key} is there twice")
            rules[entry.key] = RULES[entry.key](entry)
        except UsageError as fault:
            faults.append(f"line {entry.line}: {_words(entry.key, fault)}")
    return Rules(**rules), others


def load_expectation(path: Path) -> Expectation:
    """What a snapshot says (`expectation_text`). Raises UsageError that lists every fault with its line."""
    return parse_expectation(_text_of(path, "snapshot", "--against"), str(path))


def parse_expectation(text: str, name: str = "snapshot") -> Expectation:
    """The same of its text; `name` is what messages call it."""
    root, faults, entries = _root(text, name), list[str](), dict[str, _Entry]()
    for entry in _pairs(root, "") if root else ():
        if entry.key not in EXPECTED:
            known = f"{meant(entry.key[:80], EXPECTED)}the keys are {', '.join(EXPECTED)}"
            faults.append(f"line {entry.line}: {entry.key[:80]} is not a key of a snapshot; {known}")
        elif entry.key in entries:
            faults.append(
                f"line {entry.line}: {entry.key} is there twice; the first is on line {entries[entry.key].line}"
            )
        else:
            entries[entry.key] = entry
    if form := entries.pop(SNAPSHOT, None):
        faults += [] if form.text == FORM else [f"line {form.line}: {SNAPSHOT} {form.text!r:.80} is not {FORM}"]
    else:
        faults.append(f"{SNAPSHOT} is not there: --snapshot writes it, and an expect of a spec needs no --against")
    entries.pop("taken", None)
    spec = _spec(entries.values(), faults)
    if not entries and not faults:
        faults.append("it expects nothing")  # every node would be as it says
    if faults:
        evidence = "\n".join(faults[:MOST])
        raise UsageError(f"{name} is not a snapshot that a node can be compared with", evidence=evidence)
    return spec.expect


def expectation_text(found: Mapping[str, str], taken: str) -> tuple[str, tuple[str, ...]]:
    """(a snapshot's text, the keys whose value is of a form that it could not hold). `taken`: the day."""
    lines, odd = [], []
    for key, text in found.items():
        try:
            KEYS[f"expect.{key}"].parse(text)
        except UsageError:
            odd.append(key)
        else:
            lines.append(f"  {key}: {json.dumps(text)}\n")
    return f"{SNAPSHOT}: {FORM}\ntaken: {json.dumps(taken)}\nexpect:\n{''.join(lines)}", tuple(odd)


def _profile(entry: _Entry) -> str:
    if entry.shape != "scalar" or not entry.text:
        raise UsageError("the name of a profile is wanted here")
    return entry.text.strip()


def _severity(entry: _Entry) -> tuple[tuple[str, Weight], ...]:
    pairs = _texts(entry.node, "CHECK: error or CHECK: warning")
    return tuple((id, parse_weight(id, text)) for id, text in _bounded(list(pairs.items())))


def _acknowledge(entry: _Entry) -> tuple[Acknowledgement, ...]:
    import yaml

    if not isinstance(entry.node, yaml.SequenceNode):
        raise UsageError("a list is wanted here, each with id, reason and expires")
    form = "id, reason and expires"
    return tuple(parse_acknowledgement(_texts(one, form)) for one in _bounded(entry.node.value))


def _bounded(values: list[Any]) -> list[Any]:
    if len(values) > MOST:
        raise UsageError(f"there are {len(values)} of them; at most {MOST} are read")
    return values


def _texts(node: object, form: str) -> dict[str, str]:
    """A mapping of plain values. Raises UsageError for anything else, and for a key that stands twice."""
    import yaml

    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"a mapping is wanted here: {form}")
    texts: dict[str, str] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
            raise UsageError(f"line {key.start_mark.line + 1} is not KEY: VALUE; wanted is {form}")
        if key.value in texts:
            raise UsageError(f"{key.value[:80]} is there twice")
        texts[key.value] = value.value
    return texts


RULES: dict[str, Callable[[_Entry], Any]] = {
    "profile": _profile,
    "severity": _severity,
    "acknowledge": _acknowledge,
}


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
        known = (*KEYS, *RULES)
        said = f"{meant(key, known)}the keys are {', '.join(known)}"
        raise UsageError(f"{key} is not a key of a spec", evidence=said)
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


def _root(text: str, name: str) -> yaml.MappingNode | None:
    """The file's mapping; None for an empty file. Scalars keep their spelling: to YAML 580.10 is the number 580.1."""
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
        return None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(
            f"{name} is not a mapping", evidence="a spec is lines of `key: value`", remedy="see examples/specs/"
        )
    return root


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
            yield _Entry(line, name, ",".join(items), "list", value)
        elif isinstance(value, yaml.ScalarNode):
            null = value.tag == "tag:yaml.org,2002:null"
            yield _Entry(line, name, None if null else str(value.value), "scalar", value)
        else:
            yield _Entry(line, name, None, "mapping", value)


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


def _expectation() -> dict[str, Key]:
    """As flags they are values of --expect."""
    return {
        f"expect.{name}": Key(f"--expect {name}", f"expect.{name}", parse, many=name in LISTS)
        for name, parse in FORMS.items()
    }


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
    "expect.nvswitches": Key("--expect nvswitches", "expect.nvswitches", _count("--expect nvswitches")),
    "expect.mig": Key("--expect mig", "expect.mig", parse_mig, many=True),
    **_expectation(),
    "site_checks": Key(
        "--site-checks", "site_checks", _matching("--site-checks", r"/.+", "an absolute path, of a directory")
    ),
    **_toolkit_config(),
}


SNAPSHOT, FORM = "gpunode_expectation", "1"  # what makes a file a snapshot, and the form that this gpunode reads
EXPECTED = (SNAPSHOT, "taken", *(key for key in KEYS if key.startswith("expect.")))


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
