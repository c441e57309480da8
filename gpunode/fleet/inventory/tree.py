"""What an inventory says, whatever its format: hosts, groups, and what each says of how its hosts are reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Literal

from gpunode.advice import listing
from gpunode.errors import UsageError
from gpunode.fleet.inventory.ssh_words import MOST_FAULTS, fault_of
from gpunode.fleet.inventory.words import MOST_HOSTS, bracketed, expand
from gpunode.transport.ssh_config import SshTarget, parse_target
from gpunode.values import dataclass

ALL, UNGROUPED = "all", "ungrouped"  # the group above all groups, and the hosts that no other group has
MOST_GROUPS = 1000
MOST_DEPTH = 32  # groups in each other
MOST_NAMES = 100_000  # a host may stand in many groups: names as they are after their ranges

# "ansible": settings are variables, which are read when it is known whose they are
Dialect = Literal["list", "own", "ansible"]


@dataclass(frozen=True)
class Said:
    """A setting as text, and where it stands."""

    text: str
    line: int  # 0: not known
    unset: bool = False  # Ansible's null: what is said farther away does not count, and neither does this


@dataclass
class Group:
    name: str
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    settings: dict[str, Said] = field(default_factory=dict)
    beside: dict[str, Said] = field(default_factory=dict)  # the same of its files in group_vars
    spec: dict[str, str] = field(default_factory=dict)  # keys of a spec, as texts


@dataclass
class Tree:
    """Filled by a reader, which leaves everything that is wrong in `faults`, to be told together."""

    source: str  # as messages call it: "--inventory fleet.yaml"
    dialect: Dialect = "own"
    groups: dict[str, Group] = field(default_factory=dict)
    hosts: dict[str, dict[str, Said]] = field(default_factory=dict)  # name -> its own settings
    specs: dict[str, dict[str, str]] = field(default_factory=dict)  # name -> its own keys of a spec
    targets: dict[str, SshTarget] = field(default_factory=dict)  # of a list: the hosts as they were written
    faults: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)  # what is not read, and said
    names: int = 0

    def fault(self, line: int, what: str) -> None:
        self.faults.append(f"line {line}: {what}" if line else what)

    def group(self, name: str, line: int) -> Group:
        """The group of that name, which is made where there is none yet."""
        if name not in self.groups:
            if not is_group_name(name):
                self.fault(line, f"{name[:80]!r} is not a name of a group")
            if len(self.groups) == MOST_GROUPS:
                self.fault(line, f"more than {MOST_GROUPS} groups")
            self.groups[name] = Group(name)
        return self.groups[name]

    def add_hosts(self, word: str, group: Group | None, settings: Mapping[str, Said], line: int) -> tuple[str, ...]:
        """The names in a word such as gpu[01-04] or ann@gpu07:2222, with their settings; () where it is wrong.

        Raises UsageError where the inventory is too large to go on.
        """
        try:
            targets = [parse_target(name) for name in expand(bracketed(word))]
        except UsageError as error:
            self.fault(line, fault_of(error))
            return ()
        self.names += len(targets)
        found = []
        for target in targets:
            name = str(SshTarget(target.host))
            found.append(name)
            if group is not None:
                group.hosts[name] = None
            own = {key: Said(str(value), line) for key, value in self._typed(target) if value is not None}
            for key, said in (*own.items(), *settings.items()):
                self._set(name, key, said)
            self.hosts.setdefault(name, {})
        if len(self.hosts) > MOST_HOSTS or self.names > MOST_NAMES or len(self.groups) > MOST_GROUPS:
            raise UsageError(
                f"{self.source} is too large",
                evidence=f"line {line}: over {MOST_HOSTS} hosts, {MOST_NAMES} names of hosts, or {MOST_GROUPS} groups",
                remedy="split it: one run takes that many",
            )
        return tuple(found)

    def _typed(self, target: SshTarget) -> tuple[tuple[str, object], ...]:
        """What the word itself says, by the names that the dialect has for it."""
        prefix = "ansible_" if self.dialect == "ansible" else ""
        return ((f"{prefix}user", target.user), (f"{prefix}port", target.port))

    def _set(self, name: str, key: str, said: Said) -> None:
        """A host that is named twice is one; two places that do not agree are a fault."""
        before = self.hosts.setdefault(name, {}).setdefault(key, said)
        if before.text != said.text:
            self.fault(
                said.line, f"{name}: {key} is {said.text[:80]!r}, and {before.text[:80]!r} on line {before.line}"
            )

    def check(self) -> None:
        """Faults of the whole: children that are no group, circles, too many groups in each other, no host."""
        for group in self.groups.values():
            for child in group.children:
                if child not in self.groups:
                    self.fault(0, f"group {group.name} has a child {child[:80]!r}, and there is no such group")
        order = self._order()
        depth: dict[str, int] = {}
        for name in order:  # children first
            depth[name] = 1 + max((depth.get(child, 0) for child in self.groups[name].children), default=0)
        if deepest := next((name for name in order if depth[name] > MOST_DEPTH), None):
            self.fault(0, f"group {deepest} has more than {MOST_DEPTH} groups in each other")
        if not self.hosts and not self.faults:
            self.fault(0, "no host is named")

    def refuse_faults(self) -> None:
        """Raises UsageError with all of them."""
        if self.faults:
            raise UsageError(
                f"{self.source}: {listing(dict.fromkeys(self.faults), MOST_FAULTS, between='; ', what='more faults')}",
                evidence="nothing was touched",
                remedy="correct it",
            )

    def _order(self) -> list[str]:
        """Group names, children before their parents; [] with a fault where they go in a circle."""
        from graphlib import CycleError, TopologicalSorter  # late: a list has no groups

        links = {g.name: [child for child in g.children if child in self.groups] for g in self.groups.values()}
        try:
            return list(TopologicalSorter(links).static_order())
        except CycleError as error:
            circle = [str(name) for name in error.args[1]]
            self.fault(0, f"groups are each other's children: {' → '.join(circle[:MOST_DEPTH])}")
            return []

    def above(self) -> dict[str, frozenset[str]]:
        """Each group with all groups above it. Of a tree without faults."""
        parents: dict[str, set[str]] = {name: set() for name in self.groups}
        for name in reversed(self._order()):  # parents first
            for child in self.groups[name].children:
                parents[child] |= parents[name] | {name}
        return {name: frozenset(found | ({ALL} if name != ALL else set())) for name, found in parents.items()}

    def below(self, name: str) -> set[str]:
        """All hosts of a group and of the groups in it."""
        if name == ALL:
            return set(self.hosts)
        if name == UNGROUPED:
            others = (group.hosts for group in self.groups.values() if group.name not in (ALL, UNGROUPED))
            return set(self.hosts).difference(*others)
        found, left, seen = set[str](), [name], set[str]()
        while left:
            group = self.groups[left.pop()]
            found |= group.hosts.keys()
            left += [child for child in group.children if child not in seen]
            seen |= group.children.keys()
        return found

    def groups_of_hosts(self) -> dict[str, list[str]]:
        """Each host with the groups that name it, in the order of the file.

        Ansible's `ungrouped` has the hosts that no other group has, whatever stands in it (reconcile_inventory of
        ansible-core 2.19, lib/ansible/inventory/data.py).
        """
        found: dict[str, list[str]] = {}
        for group in self.groups.values():
            settled = self.dialect == "ansible" and group.name == UNGROUPED
            for name in self.below(UNGROUPED) if settled else group.hosts:
                found.setdefault(name, []).append(group.name)
        return found


def is_group_name(name: str) -> bool:
    return 0 < len(name) <= 200 and name[0] not in "-@!&" and name.isprintable() and not set(name) & set(" ,:[]*?=")


def of_targets(source: str, targets: Iterable[SshTarget]) -> Tree:
    """A list, in which each host is as it was typed."""
    named = {str(target): target for target in targets}
    return Tree(source, "list", hosts={name: {} for name in named}, targets=named)


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    return enumerate((line.strip() for line in text.splitlines()), 1)
