"""What an engine's files configure, read by the engine's own reader, as setup reads them; with file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpunode.model.entities import place, unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.files import FileFacts
from gpunode.model.report import Finding, NotApplicable
from gpunode.values import dataclass

if TYPE_CHECKING:
    from gpunode.engines.provenance import Origin


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


def program_in_file(host: HostFacts, facts: RuntimeFacts, handler: str) -> Origin | None:
    """What the engine's files or flags name for the handler: a program, several to choose from (podman, a comma
    between), or "" for none; None where they do not name the handler, as those of k3s, which finds it by itself."""
    from gpunode.engines.provenance import BUILT_IN
    from gpunode.engines.registry import ENGINES

    kind = ENGINES.get(facts.name)
    said = kind.origins(host, facts) if kind else ()
    return next((one for one in said if one.setting == f"handler {handler}" and one.source != BUILT_IN), None)


def unread(file: FileFacts, engine: RuntimeFacts) -> Finding | NotApplicable:
    """What a file that is there and was not read says: of itself, when it is none that an engine can read either."""
    from gpunode.editing.unread import is_no_file, refusal

    why = file.unread or ""
    if not is_no_file(why):
        return NotApplicable(f"{file.path} was not read: {why}")
    refused = refusal(file.path, why)
    return Finding(
        f"{file.path} is no file: setup refuses it, and {engine.label} may not start again with it",
        evidence=refused.problem,
        remedy=refused.remedy,
        entities=(place(file.path), *unit(engine.unit)),
    )
