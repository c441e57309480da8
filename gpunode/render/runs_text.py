"""Earlier runs for a person: the list of them, and how one of them ended host by host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpunode.advice import and_more, listing
from gpunode.errors import ExitCode
from gpunode.model.run_record import HostState, MergedRuns, Overruled, PastRun, RunHeader
from gpunode.remedy import Command, gpunode
from gpunode.render.clean import clean_line
from gpunode.render.failed_hosts import pasted
from gpunode.render.run_text import endings
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import closed_words, code_counts, count, fold_hosts

VERBS = {"fix": "check --fix"}


def runs_text(runs: Sequence[PastRun], more: int, style: Style = PLAIN) -> str:
    """One run a line, the newest first."""
    rows = [("run", "of", "hosts", "by", "how it ended")]
    rows += [(r.header.id, _verb(r.header), str(len(r.header.hosts)), r.header.user, _end(r)) for r in runs]
    widths = [max(len(clean_line(row[place])) for row in rows) for place in range(4)]
    lines = [
        "  ".join(
            [*(f"{clean_line(cell):<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]
        ).rstrip()
        for row in rows
    ]
    lines[0] = paint(style, "head", lines[0])
    return "\n".join(lines + ([and_more(more, "older")] if more else []))


def _verb(header: RunHeader) -> str:
    return VERBS.get(header.verb, header.verb)


def _end(run: PastRun) -> str:
    if run.header.ended:
        return code_counts({ExitCode(code): number for code, number in run.header.codes.items()})
    return f"{_unended(run)}: {len(run.in_state(HostState.ENDED))} of {count(len(run.hosts), 'host')} ended"


def _unended(run: PastRun) -> str:
    if run.lives is None:
        return f"not ended ({clean_line(str(run.header.controller))})"
    return f"at work ({clean_line(str(run.header.controller))})" if run.lives else "interrupted"


def run_shown_text(
    merged: MergedRuns, style: Style = PLAIN, *, lives: bool | None = None, again: Sequence[Command] = ()
) -> str:
    """How each host ended, equal endings once; what has not ended; the hosts to paste, and what tries them again."""
    ssh = all(header.over_ssh for header in merged.headers)
    ended = [host.outcome for host in merged.hosts if host.outcome]
    lines = [line for header in merged.headers for line in _head(header, style, lives)]
    lines += ["", *endings(ended, style, ssh=ssh)]
    for state, label in ((HostState.BEGUN, "at work"), (HostState.WAITING, "not begun")):
        names = [host.target for host in merged.hosts if host.state is state]
        lines += hang(style, f"{label:<10}", fold_hosts(names)) if names else []
    lines += hang(style, "", f"{count(len(merged.hosts), 'host')}: {_counts(merged)}")
    lines += [line for one in _notes(merged) for line in hang(style, "note      ", one)]
    closed = [closed_words(host.target, command) for host in merged.hosts for command in host.closed]
    lines += [line for one in closed for line in hang(style, "closed    ", one)]
    failed = [host.target for host in merged.hosts if not host.done]
    return "\n".join(lines + _again(failed, again, style, merged, ssh=ssh and lives is not True))


def _head(header: RunHeader, style: Style, lives: bool | None) -> list[str]:
    words = f"{_verb(header)} of {count(len(header.hosts), 'host')} by {header.user} on {header.controller.host}"
    end = (
        f", ended {header.ended}"
        if header.ended
        else ""
        if lives is None
        else ", at work"
        if lives
        else ", interrupted"
    )
    lead = paint(style, "head", header.id) + "   "
    return hang(style, lead, clean_line(f"{words}, begun {header.begun}{end}"), lead_width=len(header.id) + 3)


def _counts(merged: MergedRuns) -> str:
    ended = [host.outcome.code for host in merged.hosts if host.outcome]
    left = len(merged.hosts) - len(ended)
    return " · ".join(filter(None, (code_counts(Counter(ended)), f"{left} not ended" if left else "")))


def torn_words(lines: int) -> str:
    return f"{count(lines, 'line')} of the record torn or odd: what it said is lost"


def _notes(merged: MergedRuns) -> list[str]:
    notes = [torn_words(merged.torn)] if merged.torn else []
    by_pair: dict[tuple[str, str], list[Overruled]] = {}
    for one in merged.overruled:
        by_pair.setdefault((one.run, one.by), []).append(one)
    pairs = [
        f"{fold_hosts(o.target for o in same)}: {by} counts, {run} is older" for (run, by), same in by_pair.items()
    ]
    return notes + ([listing(pairs, 8, between="; ")] if pairs else [])


def _again(
    failed: Sequence[str], again: Sequence[Command], style: Style, merged: MergedRuns, *, ssh: bool
) -> list[str]:
    """Nothing to paste where the runs had not all the same inventory: nothing names hosts of two."""
    if not failed:
        return []
    inventories = {str(header.connection.get("inventory", "")) for header in merged.headers}
    one = len(inventories) == 1
    return pasted(failed, *inventories if one else (), ssh=ssh and one) + [
        line for one in again for line in hang(style, "again     ", str(one))
    ]


def commands_for(run: PastRun) -> tuple[Command, ...]:
    """What goes on with it: of a setup alone, and not while it is at work."""
    if run.header.verb != "setup" or run.lives is True or not run.not_done:
        return ()
    resume = gpunode("setup", "--resume", run.header.id, ssh=False)
    retry = gpunode("setup", "--retry-failed", run.header.id, ssh=False)
    return (retry,) if not run.in_state(HostState.BEGUN, HostState.WAITING) else (resume, retry)
