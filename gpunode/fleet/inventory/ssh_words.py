"""The hosts of `--ssh`: lists, ranges, addresses and @files, read once; every fault is in one message."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpunode.advice import listing
from gpunode.errors import UsageError
from gpunode.fleet.inventory.words import MOST_HOSTS, expand, split_words
from gpunode.transport.ssh_config import SshTarget, parse_target

MOST_FAULTS = 20  # that are listed one by one


def parse_ssh_targets(values: Sequence[str]) -> tuple[SshTarget, ...]:
    """`h1,h2`, `user@h:port`, `[v6]:port`, `gpu[01-64].example`, `n[1,3,7-9]`, `@FILE`: in order, each host once.

    Raises UsageError that lists every fault.
    """
    faults: list[str] = []
    found = targets_of(itertools.chain.from_iterable(_words(value, faults) for value in values), faults)
    if not found and not faults:
        faults.append("no host is named")
    if faults:
        raise UsageError(
            f"--ssh: {listing(faults, MOST_FAULTS, between='; ', what='more faults')}",
            evidence="nothing was touched",
            remedy="examples: gpu07, root@gpu07:2222, [2001:db8::7]:22, gpu[01-64].example, @hosts.txt",
        )
    return found


def targets_of(words: Iterable[str], faults: list[str]) -> tuple[SshTarget, ...]:
    """Each word as the hosts that it names, each host once; what is wrong goes to `faults`."""
    found: dict[SshTarget, None] = {}
    for word in words:
        try:
            found.update((parse_target(name), None) for name in expand(word))
        except UsageError as error:
            faults.append(fault_of(error))
        if len(found) > MOST_HOSTS:
            faults.append(f"more than the {MOST_HOSTS} hosts of one run")
            break
    return tuple(found)


def fault_of(error: UsageError) -> str:
    """A fault among others."""
    more = error.evidence or error.remedy.text
    return f"{error.problem} ({more})" if more else error.problem


def _words(value: str, faults: list[str]) -> Iterator[str]:
    for word in split_words(value):
        if not word.startswith("@"):
            yield word
            continue
        try:
            yield from _in_file(word)
        except UsageError as error:
            faults.append(fault_of(error))


def _in_file(word: str) -> Iterator[str]:
    """The words of @FILE."""
    from gpunode.fleet.inventory.lists import words_of_list  # late, as everywhere here: most runs have no file
    from gpunode.fleet.inventory.source import text_of

    return words_of_list(text_of(Path(word[1:]), "--ssh @"), f"--ssh {word}")
