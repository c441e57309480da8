"""Which engine still names NVIDIA's program: its package must not be removed from under it, whoever wrote that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpunode.engines.provenance import DEFAULT
from gpunode.engines.registry import ENGINES
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.past import Past
from gpunode.model.spec import TOOLKIT


def still_named(host: HostFacts, past: Past, restored: Iterable[str]) -> tuple[str, ...]:
    """A reason for each engine but those in `restored` (labels): their files are as before gpunode, or become so."""
    others = (facts for facts in host.runtimes if facts.label not in set(restored))
    found = (next(_reasons(host, facts, past.handler), "") for facts in others)
    return tuple(filter(None, found))


def _reasons(host: HostFacts, facts: RuntimeFacts, handler: str) -> Iterator[str]:
    default = _default_in_file(host, facts, handler)
    if default:
        yield f"{default} makes {handler} the default runtime of {facts.label}"
    if facts.active and facts.effective_default == handler:
        yield f"{facts.label} still runs with {handler} as its default runtime"
    if not ENGINES[facts.name].embedded:  # a distribution writes its file anew, by what it finds at its start
        yield from _mentions(host, facts)


def _default_in_file(host: HostFacts, facts: RuntimeFacts, handler: str) -> str:
    origins = ENGINES[facts.name].origins(host, facts)
    return next((o.where for o in origins if (o.setting, o.value) == (DEFAULT, handler) and o.source != "built in"), "")


def _mentions(host: HostFacts, facts: RuntimeFacts) -> Iterator[str]:
    """Read as text, since a file that the daemon refuses today is corrected by somebody tomorrow."""
    for path in dict.fromkeys((facts.config_path, *facts.imports)):
        lines = (host.file(path).text or "").splitlines()
        for number, line in enumerate(lines, 1):
            if TOOLKIT in line and not line.lstrip().startswith("#"):
                yield f"{path}:{number} names {TOOLKIT} to {facts.label}"
