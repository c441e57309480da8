"""What an engine's file asks for, read far enough to quote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpunode.checks.words import active_lines
from gpunode.foreign import NotRead, read_json
from gpunode.model.facts import HostFacts, RuntimeFacts

DEFAULT_NAME = re.compile(r"default_runtime_name\s*=\s*[\"']([^\"']*)[\"']")


@dataclass(frozen=True)
class Quote:
    """A value with the place it stands in."""

    path: str
    line: int | None
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''} {self.key} = {self.value}"


def default_in_file(host: HostFacts, engine: RuntimeFacts) -> Quote | None:
    """The default runtime that the engine's files name; None when they name none or were not read."""
    if engine.name == "docker":
        settings = daemon_json(host, engine)
        value = settings.get("default-runtime") if isinstance(settings, Mapping) else None
        return Quote(engine.config_path, None, "default-runtime", value) if isinstance(value, str) else None
    quotes = [
        Quote(path, number, "default_runtime_name", found.group(1))
        for path in (engine.config_path, *engine.imports)
        for number, line in active_lines(host.file(path).text)
        if (found := DEFAULT_NAME.match(line))
    ]
    return quotes[-1] if quotes else None  # the file that is merged in last wins


def daemon_json(host: HostFacts, engine: RuntimeFacts) -> object:
    """docker's daemon.json as values; the parser's own words (str) when it is no JSON; {} when absent or empty."""
    text = host.file(engine.config_path).text or ""
    if not text.strip():
        return {}
    try:
        return read_json(text, undecodable=True)
    except NotRead as error:
        return f"line {error.line} column {error.column}: {error.what}"
