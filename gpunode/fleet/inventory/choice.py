"""Which hosts of an inventory a run is for: --limit, --exclude and --shard, by names and groups."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Sequence

from gpunode.advice import listing, meant
from gpunode.errors import UsageError
from gpunode.fleet.inventory.ssh_words import MOST_FAULTS, fault_of
from gpunode.fleet.inventory.tree import ALL, UNGROUPED, Tree
from gpunode.fleet.inventory.words import expand, split_words
from gpunode.foreign import whole_number
from gpunode.transport.ssh_config import parse_target
from gpunode.values import dataclass

MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Shard:
    """One of `count` parts; `number` counts from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """'3/8'. Raises UsageError."""
        number, _, count = (part.strip() for part in text.partition("/"))
        first, all_of_them = whole_number(number), whole_number(count)
        if first is None or all_of_them is None or not 1 <= first <= all_of_them <= MOST_SHARDS:
            raise UsageError(
                f"--shard {text[:40]!r} is not a part of a whole",
                evidence=f"its form is N/M with N from 1 to M, and M at most {MOST_SHARDS}",
                remedy="for example --shard 3/8, the third of eight parts",
            )
        return cls(first, all_of_them)

    def has(self, name: str) -> bool:
        """By a hash of the host's name alone: it stays in its part whatever hosts come, go or are left out."""
        digest = hashlib.sha256(name.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1


def chosen(tree: Tree, limit: Sequence[str], exclude: Sequence[str], shard: Shard | None) -> tuple[str, ...]:
    """The names of the hosts, in the inventory's order; () where the shard has none.

    Raises UsageError for a word that matches nothing, and where --exclude leaves none.
    """
    kept = _matched(tree, "--limit", limit) if limit else set(tree.hosts)
    without = _matched(tree, "--exclude", exclude) if exclude else set()
    names = [name for name in tree.hosts if name in kept and name not in without]
    if not names:
        raise UsageError(
            "--exclude leaves no host" if not limit else "--limit and --exclude leave no host",
            evidence=f"of {len(tree.hosts)} hosts, {len(kept)} were chosen and all of these excluded",
            remedy="exclude fewer of them",
        )
    return tuple(name for name in names if shard is None or shard.has(_called(tree, name)))


def _called(tree: Tree, name: str) -> str:
    """The host's name, without the user and the port of a list's word, and the brackets of an IPv6 address.

    Two lists may differ in the former, and only inventories have the latter of every host.
    """
    return (tree.targets.get(name) or parse_target(name)).host


def _matched(tree: Tree, flag: str, values: Sequence[str]) -> set[str]:
    found, faults = set[str](), list[str]()
    by_host = _by_host(tree)
    for word in (word for value in values for word in split_words(value)):
        try:
            found |= _hosts(tree, word, by_host)
        except UsageError as error:
            faults.append(fault_of(error))
    if faults:
        raise UsageError(
            f"{flag}: {listing(faults, MOST_FAULTS, between='; ', what='more faults')}",
            evidence=f"there are {len(tree.hosts)} hosts and {len(tree.groups)} groups; nothing was touched",
            remedy="name a host, a group, a range such as gpu[01-04], or a pattern such as gpu*",
        )
    return found


def _by_host(tree: Tree) -> dict[str, set[str]]:
    """Names by which a host may be called, and those of the hosts that are meant: root@gpu07:22 is gpu07 too."""
    found: dict[str, set[str]] = {}
    for name in tree.hosts:
        found.setdefault(name, set()).add(name)
        found.setdefault(_called(tree, name), set()).add(name)
    return found


def _hosts(tree: Tree, word: str, by_host: dict[str, set[str]]) -> set[str]:
    """What one word matches. Raises UsageError for nothing, or for two things."""
    if "*" in word or "?" in word:
        return _like(tree, word, by_host)
    if word in (ALL, UNGROUPED) or word in tree.groups:
        members = tree.below(word)
        if word in by_host and members != by_host[word]:
            raise UsageError(f"{word} is a group and a host", evidence="write a pattern that only one of them has")
        return members
    missing, found = list[str](), set[str]()
    for name in expand(word):
        found |= by_host.get(name, set())
        missing += [] if name in by_host else [name]
    if missing:
        near = meant(missing[0], (*by_host, *tree.groups))
        raise UsageError(f"{listing(missing)} {'is' if len(missing) == 1 else 'are'} not there", evidence=near.strip())
    return found


def _like(tree: Tree, word: str, by_host: dict[str, set[str]]) -> set[str]:
    """Of a pattern, brackets are what --ssh means by them: a range."""
    found = set[str]()
    for one in expand(word):
        pattern = re.compile(fnmatch.translate(one.replace("[", "[[]")))
        found |= {name for called, names in by_host.items() if pattern.match(called) for name in names}
        found |= {name for group in tree.groups if pattern.match(group) for name in tree.below(group)}
    if not found:
        near = meant(word.strip("*?"), (*by_host, *tree.groups))
        raise UsageError(f"{word!r} matches no host and no group", evidence=near.strip())
    return found
