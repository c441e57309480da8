"""Sentences and small forms that every renderer shares."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gpunode.errors import SEVERITY, ExitCode
from gpunode.masking import masked

if TYPE_CHECKING:
    from gpunode.model.report import HostOutcome

CODE_WORDS = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE: "asked wrongly",
    ExitCode.UNREACHABLE: "unreachable",
    ExitCode.UNSUPPORTED: "not supported",
    ExitCode.ROLLBACK_FAILED: "needs manual recovery",
    ExitCode.REBOOT_NEEDED: "needs a reboot",
    ExitCode.DRIFT: "changed since the plan",
    ExitCode.LOCKED: "locked by another gpunode",
    ExitCode.WARNINGS: "warnings only",
}


# Of Untouched, for hosts of a fleet; their codes' words would say that something failed, or is not supported.
UNTOUCHED_WORDS = {"skipped": "skipped", "not-begun": "not begun"}


def count(number: int, noun: str, plural: str = "") -> str:
    """1 host, 2 hosts; `plural` where an s is not enough."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def seconds(value: float) -> str:
    """0.4 s, 41 s, 12 min 5 s."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def size(value: int) -> str:
    """80 GiB, 512 MiB; bytes below one MiB."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if value >= unit:
            return f"{value / unit:.0f} {name}"
    return f"{value} bytes"


def fold_hosts(names: Iterable[str]) -> str:
    """gpu01, gpu02, gpu03 and db -> "db, gpu[01-03]": neighbours in number become a range, as --ssh reads it."""
    plain, numbered = [], []
    for name in sorted(set(names)):
        match = re.fullmatch(r"(\D*)(\d+)(\D*)", name)  # an address has more than one number and stays whole
        if match is None:
            plain.append(name)
        else:
            numbered.append(match.groups())
    words = list(plain)
    numbered.sort(key=lambda n: (n[0], n[2], len(n[1]), n[1]))
    for (head, tail, _), group in itertools.groupby(numbered, key=lambda n: (n[0], n[2], len(n[1]))):
        words += [head + run + tail for run in _runs([digits for _, digits, _ in group])]
    return ", ".join(sorted(words))


def _runs(digits: Sequence[str]) -> list[str]:
    """["01", "02", "03", "07"] -> ["[01-03]", "07"]; the strings are sorted and of one length."""
    runs = []
    for _, group in itertools.groupby(enumerate(digits), key=lambda pair: int(pair[1]) - pair[0]):
        members = [d for _, d in group]
        runs.append(members[0] if len(members) == 1 else f"[{members[0]}-{members[-1]}]")
    return runs


def ending_word(outcome: HostOutcome) -> str:
    """How one host of a fleet ended, in a word or two."""
    return UNTOUCHED_WORDS[outcome.untouched] if outcome.untouched else CODE_WORDS[outcome.code]


def outcome_counts(outcomes: Sequence[HostOutcome]) -> str:
    """ "1 failed (1) · 2 skipped (4) · 11 done (0)": each way in which hosts ended, most severe first."""
    return _counts(Counter((o.code, ending_word(o)) for o in outcomes))


def code_counts(numbers: Mapping[ExitCode, int]) -> str:
    """The same of hosts of which only their codes are kept."""
    return _counts({(code, CODE_WORDS[code]): number for code, number in numbers.items()})


def _counts(numbers: Mapping[tuple[ExitCode, str], int]) -> str:
    ordered = sorted(numbers.items(), key=lambda item: (SEVERITY.index(item[0][0]), item[0][1]))
    return " · ".join(f"{number} {word} ({int(code)})" for (code, word), number in ordered)


def with_name(target: str, text: str) -> str:
    """ "gpu01: text", its own secrets masked. A name that reads as a secret's would have the text for its value, which
    whoever masks the line takes away: "[gpu-token] text".
    """
    text = masked(without_name(target, text), "lines")
    line = f"{target}: {text}"
    return line if masked(line, "lines") == line else f"[{target}] {text}"


def without_name(target: str, problem: str) -> str:
    """A problem for a line that begins with the host's name already."""
    return problem.removeprefix(f"{target}: ").removeprefix(f"[{target}] ")


def with_its_name(target: str, problem: str) -> str:
    """A problem that begins with its host's name, whatever the name is; any other as it is."""
    return with_name(target, problem) if without_name(target, problem) != problem else problem


def mask_url(url: str) -> str:
    """http://user:secret@proxy:3128 -> http://***@proxy:3128."""
    return re.sub(r"//[^/@\s]*(?:@[^/@\s]*)*@", "//***@", url)


def closed_words(target: str, command: str) -> str:
    """Of a host that a run closed to its scheduler, and `command`, which opens it again."""
    return f"{target} was left closed to new work: once it is well, run {command}"
