"""The hosts of a run that did not end well, to paste: --ssh gpu[03,07-09]; of an inventory behind --limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpunode.errors import ExitCode
from gpunode.model.report import HostOutcome
from gpunode.regex import regex
from gpunode.remedy import Command
from gpunode.render.remedy_text import hosts_are_in
from gpunode.render.style import PLAIN, Style, hang

LONGEST = 4000  # characters: more than that nobody pastes, and a terminal cuts a line at 4095 (N_TTY_BUF_SIZE)
# The last number of the host, which is not in a port; an IPv6 address in brackets has none that is taken.
_NUMBERED = regex(r"((?:[^@]*@)?[^:\[\]]*?)(\d{1,9})([^\d:\[\]]*(?::\d+)?)")


def hosts_argument(names: Iterable[str]) -> str:
    """ "db,gpu[03,07-09].example:22": one word of --ssh, which reads it back as these names and no others."""
    plain, numbered = [], dict[tuple[str, str], list[str]]()
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.append(name)
        else:
            numbered.setdefault((found[1], found[3]), []).append(found[2])
    words = [head + _folded(numbers) + tail for (head, tail), numbers in numbered.items()]
    return ",".join(sorted(plain) + sorted(words))


def _folded(numbers: Sequence[str]) -> str:
    """["07", "03", "08"] -> "[03,07-08]"; a range that begins with a 0 keeps its number of digits."""
    runs: list[tuple[str, str]] = []
    for number in sorted(numbers, key=lambda text: (int(text), len(text))):
        if runs and number == _next(*runs[-1]):
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    parts = [first if first == last else f"{first}-{last}" for first, last in runs]
    return parts[0] if len(numbers) == 1 else f"[{','.join(parts)}]"


def _next(first: str, last: str) -> str:
    return str(int(last) + 1).zfill(len(first) if first.startswith("0") else 0)


def failed_lines(
    outcomes: Sequence[HostOutcome], style: Style = PLAIN, *, ssh: bool = True, retry: Command | None = None
) -> list[str]:
    """What is pasted, and the command that tries again; [] where all of several hosts ended well, or one was named."""
    failed = [outcome.target for outcome in outcomes if outcome.code is not ExitCode.DONE]
    if not failed or len(outcomes) < 2:
        return []
    return pasted(failed, hosts_are_in(), ssh=ssh) + (hang(style, "again     ", str(retry)) if retry else [])


def pasted(targets: Sequence[str], inventory: str = "", *, ssh: bool = True) -> list[str]:
    """The line with the argument; [] where it is too long, or the hosts are not over SSH.

    `inventory`: what says how they are reached, so that they are named by --limit; "": by --ssh.
    """
    word = hosts_argument(targets)
    if not ssh or len(word) > LONGEST:
        return []
    return [f"not done  {str(Command('', ssh=word, inventory=inventory)).partition(' ')[2]}"]
