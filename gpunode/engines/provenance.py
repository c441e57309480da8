"""Where an engine's settings come from: file and line, flag of the daemon, or its own default."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gpunode.editing import json_text, toml_text
from gpunode.engines.containerd.cri_section import V1, V2, V3
from gpunode.errors import ConfigFileError
from gpunode.model.facts import FileFacts, HostFacts, RuntimeFacts
from gpunode.model.versions import at_least

Keys = tuple[str, ...]
BUILT_IN = "built in"


@dataclass(frozen=True)
class Origin:
    """One setting and where it was said."""

    setting: str  # "default runtime", "handler nvidia", "SystemdCgroup of nvidia", "CDI"
    value: str
    source: str  # "file" | "flag" | "built in"
    path: str | None = None
    line: int | None = None  # counted from 1

    @property
    def where(self) -> str:
        if self.path is None:
            return "a flag of the daemon" if self.source == "flag" else "the daemon's own default"
        return self.path if self.line is None else f"{self.path}:{self.line}"


def origins(host: HostFacts, engine: RuntimeFacts) -> tuple[Origin, ...]:
    """The settings that decide which runtime a container gets, each with its place.

    A file that was not read, or that does not parse, has no word in it: the daemon says what it runs with.
    """
    if engine.name == "docker":
        return tuple(_docker(host.file(engine.config_path), engine))
    files = [f for path in (engine.config_path, *engine.imports) if (f := host.file(path)).text is not None]
    if engine.name in ("k3s", "rke2"):
        return tuple(_yaml(files, engine))
    roots = _ROOTS.get(engine.name, _CONTAINERD)
    return tuple(_toml(_readable(files), engine, roots))


# ---- docker


def _docker(file: FileFacts, engine: RuntimeFacts) -> Iterator[Origin]:
    try:
        config = json_text.load(file.path, file.text or "")
    except ConfigFileError:
        config = {}
    text, flags = file.text or "", dict(_flags(engine.flags))

    def said(keys: Keys) -> int:
        return int(json_text.position(text, keys).partition(":")[0])

    if "default-runtime" in flags:
        yield Origin("default runtime", flags["default-runtime"][-1], "flag")
    elif isinstance(config.get("default-runtime"), str):
        yield _in_file("default runtime", config["default-runtime"], file, said(("default-runtime",)))
    else:
        yield Origin("default runtime", "runc", BUILT_IN)
    runtimes = _table(config.get("runtimes"))
    by_flag = dict(value.partition("=")[::2] for value in flags.get("add-runtime", []))
    for name in sorted({*engine.handlers, *runtimes, *by_flag}):
        if name in runtimes:
            yield _in_file(f"handler {name}", _program(runtimes[name]), file, said(("runtimes", name)))
        else:
            yield Origin(f"handler {name}", by_flag.get(name, ""), "flag" if name in by_flag else BUILT_IN)
    features = _table(config.get("features"))
    if "cdi" in features:
        yield _in_file("CDI", json.dumps(features["cdi"]), file, said(("features", "cdi")))
    elif engine.cdi is not None:
        yield Origin("CDI", json.dumps(engine.cdi), BUILT_IN)


def _flags(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """--name=value and --name value, by name."""
    found: dict[str, list[str]] = {}
    for word, after in pairwise((*words, "")):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("--"):
            found.setdefault(name, []).append(value if equals else after)
    yield from found.items()


def _program(entry: object) -> str:
    table = _table(entry)
    return str(table.get("path") or _table(table.get("options")).get("BinaryName") or table.get("runtimeType") or "")


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# ---- engines whose files are TOML


@dataclass(frozen=True)
class _Root:
    """Where the runtimes stand in one schema."""

    table: Keys
    default: str
    handlers: str = "runtimes"
    cdi: Keys = ()


_CONTAINERD = tuple(
    _Root(("plugins", plugin, "containerd"), "default_runtime_name", cdi=("plugins", plugin, "enable_cdi"))
    for plugin in (V3, V2, V1)
)
_ROOTS = {
    "crio": (_Root(("crio", "runtime"), "default_runtime"),),
    "podman": (_Root(("engine",), "runtime"),),
}
Parsed = tuple[FileFacts, Mapping[str, Any]]


def _readable(files: Sequence[FileFacts]) -> list[Parsed]:
    parsed: list[Parsed] = []
    for file in files:
        try:
            parsed.append((file, toml_text.load(file.path, file.text or "")))
        except ConfigFileError:
            continue
    return parsed


def _toml(files: list[Parsed], engine: RuntimeFacts, roots: tuple[_Root, ...]) -> Iterator[Origin]:
    if engine.name == "containerd" and engine.version and not at_least(engine.version, (2, 0)):
        files = _from_last_section(files, roots)  # 1.x: a drop-in's section replaces that of the files before it
    name = _last(files, [(*root.table, root.default) for root in roots])
    own = "crun" if engine.name == "podman" else "runc"
    if name:
        yield _in_file("default runtime", str(name[1]), name[0], name[2])
    else:
        yield Origin("default runtime", engine.effective_default or own, BUILT_IN)
    for handler in sorted({*engine.handlers, *_handlers(files, roots)}):
        yield from _handler(handler, files, roots)
    cdi = _last(files, [root.cdi for root in roots if root.cdi])
    if cdi:
        yield _in_file("CDI", json.dumps(cdi[1]), cdi[0], cdi[2])
    elif engine.cdi is not None:
        yield Origin("CDI", json.dumps(engine.cdi), BUILT_IN)


def _handler(handler: str, files: list[Parsed], roots: tuple[_Root, ...]) -> Iterator[Origin]:
    tables = [(*root.table, root.handlers, handler) for root in roots]
    found = _last(files, tables)
    if not found:
        yield Origin(f"handler {handler}", "", BUILT_IN)
        return
    program = _last(files, [(*t, *rest) for t in tables for rest in (("options", "BinaryName"), ("runtime_path",))])
    value = program[1] if program else found[1] if isinstance(found[1], list) else ""
    yield _in_file(f"handler {handler}", _word(value), found[0], found[2])
    cgroup = _last(files, [(*table, "options", "SystemdCgroup") for table in tables])
    if cgroup:
        yield _in_file(f"SystemdCgroup of {handler}", json.dumps(cgroup[1]), cgroup[0], cgroup[2])


def _word(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _handlers(files: list[Parsed], roots: tuple[_Root, ...]) -> Iterator[str]:
    for _, plain in files:
        for root in roots:
            table = _at(plain, (*root.table, root.handlers))
            yield from table if isinstance(table, dict) else ()


def _from_last_section(files: list[Parsed], roots: tuple[_Root, ...]) -> list[Parsed]:
    with_section = [n for n, (_, plain) in enumerate(files) if any(_at(plain, r.table[:2]) for r in roots)]
    return files[with_section[-1] :] if with_section else files


def _last(files: list[Parsed], keys: Sequence[Keys]) -> tuple[FileFacts, Any, int] | None:
    """(file, value, line) of the last file that says one of `keys`."""
    for file, plain in reversed(files):
        for one in keys:
            value = _at(plain, one)
            if value is not None:
                return file, value, line_of(file.text or "", lambda text, one=one: _says(text, one))  # type: ignore[misc]
    return None


def _says(text: str, keys: Keys) -> bool:
    """Raises ConfigFileError for a text that does not parse."""
    return _at(toml_text.load("", text), keys) is not None


def line_of(text: str, says: Callable[[str], bool]) -> int:
    """The first line by whose end `text` says it, counted from 1; however it is spelled (dotted, inline, in a table).

    `says` raises ConfigFileError for a text that ends in the middle of something; the next line is tried then.
    """
    lines = text.splitlines(keepends=True)

    def by(end: int) -> bool:
        for stop in range(end, len(lines) + 1):
            try:
                return says("".join(lines[:stop]))
            except ConfigFileError:
                continue
        return True

    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if by(middle) else (middle, high)
    return high


def _at(plain: Mapping[str, Any], keys: Keys) -> Any:
    value: Any = plain
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# ---- k3s and rke2: a list of flags in YAML


def _yaml(files: list[FileFacts], engine: RuntimeFacts) -> Iterator[Origin]:
    found: Origin | None = None
    for file in files:
        for number, line in enumerate((file.text or "").splitlines(), 1):
            match = re.match(r"[\"']?default-runtime[\"']?\s*:\s*[\"']?([^\s\"'#]+)", line)
            if match:
                found = _in_file("default runtime", match[1], file, number)
    flags = dict(_flags(engine.carrier_flags))
    if "default-runtime" in flags:
        found = Origin("default runtime", flags["default-runtime"][-1], "flag")
    yield found or Origin("default runtime", engine.effective_default or "runc", BUILT_IN)
    for handler in engine.handlers:
        yield Origin(f"handler {handler}", "", BUILT_IN)


def _in_file(setting: str, value: str, file: FileFacts, line: int) -> Origin:
    return Origin(setting, value, "file", file.path, line)
