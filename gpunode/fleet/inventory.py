"""The hosts of `--ssh`: lists, ranges and addresses, read once; every fault is in one message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gpunode.advice import listing
from gpunode.errors import UsageError
from gpunode.transport.ssh_config import SshTarget, parse_target

MOST_HOSTS = 10_000
MOST_FAULTS = 20  # that are listed one by one
_RANGE = re.compile(r"\[([0-9,-]+)\]")  # an IPv6 address in brackets has a colon and is none


def parse_ssh_targets(values: Sequence[str]) -> tuple[SshTarget, ...]:
    """`h1,h2`, `user@h:port`, `[v6]:port`, `gpu[01-64].example`, `n[1,3,7-9]`: in order, each host once.

    Raises UsageError that lists every fault.
    """
    found: dict[SshTarget, None] = {}
    faults: list[str] = []
    for word in itertools.chain.from_iterable(_split(value) for value in values):
        try:
            found.update((parse_target(name), None) for name in _expand(word))
        except UsageError as error:
            faults.append(f"{error.problem} ({error.evidence or error.remedy.text})")
    if len(found) > MOST_HOSTS:
        faults.append(f"{len(found)} hosts are more than the {MOST_HOSTS} of one run")
    if not found and not faults:
        faults.append("no host is named")
    if faults:
        raise UsageError(
            f"--ssh: {listing(faults, MOST_FAULTS, between='; ', what='more faults')}",
            evidence="nothing was touched",
            remedy="examples: gpu07, root@gpu07:2222, [2001:db8::7]:22, gpu[01-64].example",
        )
    return tuple(found)


def _split(value: str) -> list[str]:
    """At commas, except those inside brackets. An empty place (`a,,b`) stays, to be reported as a fault."""
    cuts = [len(value)]
    inside = False  # whether the next bracket closes
    for sign in reversed(list(re.finditer(r"[\[\],]", value))):
        if sign[0] != ",":
            inside = sign[0] == "]"
        elif not inside:
            cuts.append(sign.start())
    return [value[before + 1 : end].strip() for before, end in pairwise([-1, *reversed(cuts)])]


def _expand(word: str) -> Iterator[str]:
    if not word:
        raise UsageError("an empty host name", evidence="two commas in a row, or one at the end")
    parts = _RANGE.split(word)  # literal, range, literal, range, ..., literal
    choices = [[part] if place % 2 == 0 else _numbers(part, word) for place, part in enumerate(parts)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_HOSTS:
        raise UsageError(f"{word!r} names {count} hosts", evidence=f"one run takes {MOST_HOSTS}")
    return ("".join(chosen) for chosen in itertools.product(*choices))


def _numbers(text: str, word: str) -> list[str]:
    """'01-03,7' -> 01 02 03 7: as many digits as the range's begin has, leading zeros kept."""
    numbers: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if match is None:
            raise UsageError(
                f"{word!r}: [{text}] is not a range", evidence="ranges look like [1-8], [01-64] or [1,3,7-9]"
            )
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise UsageError(f"{word!r}: [{part}] goes backwards", evidence=f"{last} is less than {first}")
        if int(last) - int(first) >= MOST_HOSTS:
            raise UsageError(f"{word!r}: [{part}] is too long", evidence=f"one run takes {MOST_HOSTS} hosts")
        width = len(first) if first.startswith("0") else 0
        numbers += [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    return numbers
