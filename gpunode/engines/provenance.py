"""Where an engine's settings come from: file and line, flag of the daemon, or its own default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from gpunode.editing import toml_text
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.values import dataclass

Keys = tuple[str, ...]
BUILT_IN: Literal["built in"] = "built in"
DEFAULT = "default runtime"


@dataclass(frozen=True)
class Origin:
    """One setting and where it was set."""

    setting: str  # "default runtime", "handler nvidia", "SystemdCgroup of nvidia", "CDI"
    value: str
    source: Literal["file", "flag", "built in"]
    path: str | None = None
    line: int | None = None  # counted from 1

    @property
    def where(self) -> str:
        if self.path is None:
            return "a flag of the daemon" if self.source == "flag" else "the daemon's own default"
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Root(NamedTuple):
    """Where the runtimes are in one schema of a TOML file."""

    table: Keys
    default: str
    handlers: str = "runtimes"
    cdi: Keys = ()


Parsed = tuple[FileFacts, Mapping[str, Any]]


def there(host: HostFacts, engine: RuntimeFacts) -> list[FileFacts]:
    """The engine's files that were read, in the order in which the daemon reads them."""
    return [file for path in (engine.config_path, *engine.imports) if (file := host.file(path)).text is not None]


def readable(files: Sequence[FileFacts]) -> list[Parsed]:
    """Those that parse, with their values."""
    parsed: list[Parsed] = []
    for file in files:
        try:
            parsed.append((file, toml_text.load(file.path, file.text or "")))
        except ConfigFileError:
            continue
    return parsed


def flags_of(words: Sequence[str]) -> dict[str, list[str]]:
    """--name=value and --name value, by name."""
    found: dict[str, list[str]] = {}
    for word, after in pairwise((*words, "")):
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("--"):
            found.setdefault(name, []).append(value if equals else after)
    return found


def in_file(setting: str, value: str, file: FileFacts, line: int) -> Origin:
    return Origin(setting, value, "file", file.path, line)


def of_toml(files: list[Parsed], engine: RuntimeFacts, roots: tuple[Root, ...], own: str = "runc") -> Iterator[Origin]:
    """The settings that TOML files make, later values taking precedence; `own`: the default where nobody names one."""
    name = _last(files, [(*root.table, root.default) for root in roots])
    if name:
        yield in_file(DEFAULT, str(name[1]), name[0], name[2])
    else:
        yield Origin(DEFAULT, engine.effective_default or own, BUILT_IN)
    for handler in sorted({*engine.handlers, *_handlers(files, roots)}):
        yield from _handler(handler, files, roots)
    cdi = _last(files, [root.cdi for root in roots if root.cdi])
    if cdi:
        yield in_file("CDI", json.dumps(cdi[1]), cdi[0], cdi[2])
    elif engine.cdi is not None:
        yield Origin("CDI", json.dumps(engine.cdi), BUILT_IN)


def _handler(handler: str, files: list[Parsed], roots: tuple[Root, ...]) -> Iterator[Origin]:
    tables = [(*root.table, root.handlers, handler) for root in roots]
    found = _last(files, tables)
    if not found:
        yield Origin(f"handler {handler}", "", BUILT_IN)
        return
    program = _last(files, [(*t, *rest) for t in tables for rest in (("options", "BinaryName"), ("runtime_path",))])
    value = program[1] if program else found[1] if isinstance(found[1], list) else ""
    yield in_file(f"handler {handler}", _word(value), found[0], found[2])
    cgroup = _last(files, [(*table, "options", "SystemdCgroup") for table in tables])
    if cgroup:
        yield in_file(f"SystemdCgroup of {handler}", json.dumps(cgroup[1]), cgroup[0], cgroup[2])


def _word(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _handlers(files: list[Parsed], roots: tuple[Root, ...]) -> Iterator[str]:
    for _, plain in files:
        for root in roots:
            table = at(plain, (*root.table, root.handlers))
            yield from table if isinstance(table, dict) else ()


def _last(files: list[Parsed], keys: Sequence[Keys]) -> tuple[FileFacts, Any, int] | None:
    """(file, value, line) of the last file that sets one of `keys`."""
    for file, plain in reversed(files):
        for one in keys:
            value = at(plain, one)
            if value is not None:
                return file, value, line_of_keys(file.text or "", one)
    return None


def line_of_keys(text: str, keys: Keys) -> int:
    """The line of a TOML text, counted from 1, that sets what is at `keys`."""
    return line_of(text, lambda part: at(toml_text.load("", part), keys) is not None)


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


def at(plain: Mapping[str, Any], keys: Keys) -> Any:
    """The value at `keys`; None when it, or a table above it, is absent."""
    value: Any = plain
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
