"""The hosts that were chosen, each with what the inventory says of it and of its groups.

What is said of a host takes precedence over its groups, and a group over those above it. Two groups of which none is
above the other have to agree: which of them a person meant, no rule knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.fleet.inventory.settings import SETTINGS
from gpunode.fleet.inventory.ssh_words import fault_of
from gpunode.fleet.inventory.tree import ALL, Group, Said, Tree
from gpunode.render.wording import fold_hosts
from gpunode.specfile import IDLE, idle_keys
from gpunode.transport.ssh_config import SshTarget, parse_target
from gpunode.values import dataclass

Layer = tuple[tuple[str, str], ...]  # keys of a spec with their texts


@dataclass(frozen=True)
class Member:
    """One host of a run."""

    target: SshTarget
    identity: Path | None = None
    jump: str | None = None  # "none": no jump host
    layer: Layer = ()  # what the inventory wants of it, under --spec


def members(tree: Tree, names: Iterable[str]) -> tuple[Member, ...]:
    """These hosts of the tree, in their order. Raises UsageError for all that is wrong with one of them."""
    names = tuple(names)
    if tree.dialect == "list":
        return tuple(Member(tree.targets[name]) for name in names)
    groups = tree.groups_of_hosts()
    together: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        together.setdefault(tuple(groups.get(name, ())), []).append(name)
    above, found = tree.above(), dict[str, Member]()
    for direct, hosts in together.items():
        of_groups = _Of(tree, above, direct, fold_hosts(hosts))
        settings = of_groups.merged(lambda group: group.settings) | of_groups.merged(lambda group: group.beside)
        spec = of_groups.spec()
        for name in hosts:
            found[name] = _member(tree, name, settings, spec)
    tree.refuse_faults()
    return tuple(found[name] for name in names)


@dataclass
class _Of:
    """The groups of hosts that are in the same ones."""

    tree: Tree
    above: Mapping[str, frozenset[str]]
    direct: tuple[str, ...]
    hosts: str  # as messages name them

    def merged(self, of: Callable[[Group], Mapping[str, object]]) -> dict[str, Said]:
        """What they say together; a contradiction is a fault."""
        return {key: self._agreed(key, values) for key, values in self._nearest(of).items()}

    def spec(self) -> dict[str, Said]:
        """What they want together, less what a nearer group's `driver: none` leaves nothing for."""
        nearest, wanted = self._nearest(lambda group: group.spec), self.merged(lambda group: group.spec)
        for none in IDLE.keys() & wanted.keys():
            farther = self._above(nearest[none])
            for key in idle_keys({none: wanted[none].text}) & wanted.keys():
                if nearest[key].keys() <= farther:
                    del wanted[key]
        return wanted

    def _nearest(self, of: Callable[[Group], Mapping[str, object]]) -> dict[str, dict[str, object]]:
        """Of each key the groups that say it, none of them above another, with what they say."""
        names = {ALL, *self.direct, *(name for group in self.direct for name in self.above[group])}
        said: dict[str, dict[str, object]] = {}
        for name in sorted(names & self.tree.groups.keys()):
            for key, value in of(self.tree.groups[name]).items():
                said.setdefault(key, {})[name] = value
        covered = {key: self._above(values) for key, values in said.items()}
        return {
            key: {name: value for name, value in values.items() if name not in covered[key]}
            for key, values in said.items()
        }

    def _above(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(self.above.get(name, frozenset()) for name in names))

    def _agreed(self, key: str, nearest: Mapping[str, object]) -> Said:
        texts = {name: value.text if isinstance(value, Said) else str(value) for name, value in nearest.items()}
        (first, text), *others = texts.items()
        for name, other in others:
            if other != text:
                words = f"{key} is {text[:80]!r} by group {first} and {other[:80]!r} by group {name}"
                self.tree.fault(0, f"{self.hosts}: {words}")
                break
        value = nearest[first]
        return value if isinstance(value, Said) else Said(text, 0)


def _member(tree: Tree, name: str, settings: Mapping[str, Said], spec: Mapping[str, Said]) -> Member:
    said = {**settings, **tree.hosts[name]}
    if tree.dialect == "ansible":
        from gpunode.fleet.inventory.ansible_vars import login_of  # late: --ssh has no variables

        said = login_of(said, tree, name)
    values: dict[str, object] = {}
    for key, one in said.items():
        try:
            values[key] = SETTINGS[key](one.text)
        except UsageError as error:
            tree.fault(one.line, f"{name}: {key}: {fault_of(error)}")
    own = tree.specs.get(name, {})
    wanted = {key: one.text for key, one in spec.items() if key not in idle_keys(own)} | own
    target = replace(parse_target(name), name=name)
    target = replace(target, host=str(values.get("address", target.host)), user=_text(values, "user"))
    port, identity = values.get("port"), values.get("identity")
    return Member(
        replace(target, port=port if isinstance(port, int) else None),
        identity if isinstance(identity, Path) else None,
        _text(values, "jump"),
        tuple(sorted(wanted.items())),
    )


def _text(values: Mapping[str, object], key: str) -> str | None:
    return None if key not in values else str(values[key])
