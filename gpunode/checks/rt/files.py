"""What an engine's files configure, read by the engine's own reader, as setup reads them; with file and line."""

from __future__ import annotations

from dataclasses import dataclass

from gpunode.model.facts import HostFacts, RuntimeFacts


@dataclass(frozen=True)
class Quote:
    """A value with the place it stands in."""

    path: str
    line: int | None
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''} {self.key} = {self.value}"


def default_in_file(host: HostFacts, facts: RuntimeFacts) -> Quote | None:
    """The default runtime that the engine's files name; None when they name none or were not read."""
    from gpunode.engines.provenance import DEFAULT
    from gpunode.engines.registry import ENGINES

    kind = ENGINES.get(facts.name)
    if kind is None:  # a recording of another gpunode's
        return None
    found = next((one for one in kind.origins(host, facts) if one.setting == DEFAULT and one.path is not None), None)
    return Quote(found.path, found.line, kind.default_key, found.value) if found and found.path else None
