"""What an engine makes of a tree, for the tests over pairs (trees.py)."""

from __future__ import annotations

from gpunode.engines.base import Rewrite
from gpunode.engines.registry import ENGINES
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from tests.engines import trees
from tests.engines.hosts import engine_facts, host_with

WANTED = {
    "no": RuntimeSpec(default=False),
    "gpu": RuntimeSpec(handler="gpu"),
    "cdi": RuntimeSpec(cdi=True),
    "opt": RuntimeSpec(path="/opt/gpu/nvidia-container-runtime"),
}


def engine_of(pair: trees.Pair, name: str) -> RuntimeFacts:
    """A running engine as the pair's head describes it."""
    said = pair.said
    was = said.get("was", "runc")
    return engine_facts(
        said.get("engine", name),
        said.get("version", "1.7.27"),
        effective_default=None if was == "broken" else was,
        embedded_in=said.get("embedded_in"),
        merged_config=said.get("merged_config"),
    )


def check(pair: trees.Pair, name: str) -> None:
    """The rewrite makes `after` of `before` and says so, and a second one finds nothing to do."""
    facts, want = engine_of(pair, name), WANTED.get(pair.said.get("want", ""), RuntimeSpec())
    result = rewrite(facts, pair.before, want)
    after = {**pair.before, **{edit.path: edit.after for edit in result.edits if edit.changed}}
    assert after == pair.after
    assert (", ".join(result.added) or "nothing") == pair.said["said"]
    assert not rewrite(facts, after, want).changed


def rewrite(facts: RuntimeFacts, tree: dict[str, str], want: RuntimeSpec | None = None) -> Rewrite:
    return ENGINES[facts.name].rewrite(host_of(facts, tree), facts, want or RuntimeSpec())


def host_of(facts: RuntimeFacts, tree: dict[str, str]) -> HostFacts:
    return host_with(facts, files=tree)
