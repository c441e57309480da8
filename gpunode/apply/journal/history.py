"""The journal's entries -> which runs are still in force, and what each of their files was before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from gpunode.apply.journal.entries import Entry, Written
from gpunode.apply.journal.for_undo import from_entry, of_older
from gpunode.apply.paths import inventory_path
from gpunode.errors import UsageError
from gpunode.model.plan import ForUndo
from gpunode.packages.registry import goes_with_packages
from gpunode.values import dataclass

StepOfRun = tuple[str, str]  # names of a run and of its step


@dataclass(frozen=True)
class Change:
    """One write of one file."""

    run: str
    step: str
    written: Written
    for_undo: ForUndo


@dataclass
class PastRun:
    """One pass of a setup, or one undo."""

    id: str
    before: Entry
    commands: list[Entry] = field(default_factory=list)
    answers: list[Entry] = field(default_factory=list)  # of commands whose output is kept
    failed: set[str] = field(default_factory=set)  # steps that were rolled back
    steps: dict[str, ForUndo] = field(default_factory=dict)  # those that began, in order
    is_undo: bool = False
    pending: bool = False  # an undo that leaves something for a later one
    config_undone: bool = False
    packages_undone: bool = False

    @property
    def done_commands(self) -> list[Entry]:
        """Of every step that was not rolled back; an interrupted one counts."""
        return [c for c in self.commands if c.get("step") not in self.failed]

    @property
    def done_steps(self) -> dict[str, ForUndo]:
        """Likewise."""
        return {step: known for step, known in self.steps.items() if step not in self.failed}

    @property
    def done_answers(self) -> list[Entry]:
        """Likewise."""
        return [a for a in self.answers if a.get("step") not in self.failed]


@dataclass
class History:
    runs: dict[str, PastRun] = field(default_factory=dict)
    changes: dict[str, list[Change]] = field(default_factory=dict)  # path -> what still stands, oldest first
    cut_off: dict[str, ForUndo] = field(default_factory=dict)  # steps of an undo that began and never came to an end
    undoing: dict[str, list[Written]] = field(default_factory=dict)  # path -> what undos without an end wrote
    # Of each step, path -> the changes as they stood before each of its writes: a later one may take it back with it.
    if_it_fails: dict[StepOfRun, dict[str, list[list[Change]]]] = field(default_factory=dict)

    def since(self, run: str | None) -> list[PastRun]:
        """Setups of which something may still stand: all, or `run` and what came after it. Raises UsageError."""
        setups = [r for r in self.runs.values() if not r.is_undo]
        if run is not None:
            first = next((n for n, r in enumerate(setups) if r.id == run or r.id.startswith(f"{run}.")), None)
            if first is None:
                raise _unknown(run, setups)
            setups = setups[first:]
        return [r for r in setups if not (r.config_undone and r.packages_undone)]

    @property
    def last_undo(self) -> str:
        return next((r.id for r in reversed(self.runs.values()) if r.is_undo), "")


def history(entries: Iterable[Entry]) -> History:
    """Every entry in order. What an undo wrote is no change of its own: once it is done, it marks runs as undone."""
    found = History()
    for entry in entries:
        run = found.runs.get(str(entry.get("run", "")))
        match entry["kind"]:
            case "run-begin":
                _begin(found, entry)
            case "step-begin" if run:
                step = str(entry.get("step", ""))
                run.steps[step] = from_entry(entry)
                found.cut_off |= {step: run.steps[step]} if run.is_undo else {}
            case "command" if run:
                run.commands.append(entry)
            case "answer" if run:
                run.answers.append(entry)
            case "file":
                _file(found, entry, run)
            case "restore" if run is None or not run.is_undo:
                _restored(found, entry)
            case "step-end" if run:
                _ended(found, run, entry)
            case "run-end" if run and run.is_undo and entry.get("status") == "done":
                _undone(found, run)
            case _:
                pass
    return found


def still_needed(entries: Iterable[Entry]) -> frozenset[str]:
    """Files below the backup directory that an undo would still read; all others are history."""
    found = history(entries)
    backups = {c.written.backup for stack in found.changes.values() for c in stack if c.written.backup}
    return frozenset(backups | {inventory_path(r.id) for r in found.since(None) if not r.packages_undone})


def _begin(found: History, entry: Entry) -> None:
    before = entry.get("before")
    before = before if isinstance(before, dict) else {}
    run = str(entry.get("run", ""))
    pending = _mark(before).get("pending") is True
    found.runs[run] = PastRun(run, before, is_undo="undo" in before, pending=pending)


def _mark(before: Entry) -> Entry:
    """What an undo says of itself: {"runs": [...], "packages": false, "pending": false}."""
    mark = before.get("undo")
    return mark if isinstance(mark, dict) else {}


def _ended(found: History, run: PastRun, entry: Entry) -> None:
    step = str(entry.get("step", ""))
    if entry.get("status") == "failed":
        run.failed.add(step)
        for path, stacks in found.if_it_fails.pop(
            (run.id, step), {}
        ).items():  # nothing of it stands, also of a file that it only announced
            found.changes[path] = stacks[0] if stacks else found.changes[path]
    if run.is_undo:
        found.cut_off.pop(step, None)


def _file(found: History, entry: Entry, by: PastRun | None) -> None:
    written = Written.announced(entry)
    if written is None:
        return
    if by and by.is_undo:
        if by.pending:
            _followed(found.changes.get(written.path, []), written)
        else:
            found.undoing.setdefault(written.path, []).append(written)
        return
    stack = found.changes.setdefault(written.path, [])
    # What was restored to an earlier state since (an interrupted undo, a manual edit) has no change left.
    _cut(stack, written.before)
    run, step = str(entry.get("run", "")), str(entry.get("step", ""))
    begun = found.runs[run].steps if run in found.runs else {}
    found.if_it_fails.setdefault((run, step), {}).setdefault(written.path, []).append(list(stack))
    stack.append(Change(run, step, written, begun[step] if step in begun else of_older(step)))
    _cut(stack, written.after)


def _followed(stack: list[Change], written: Written) -> None:
    """A file of gpunode's that an undo changed for now: it is still gpunode's, as that undo left it."""
    if stack and stack[-1].written.after == written.before:
        stack[-1] = replace(stack[-1], written=replace(stack[-1].written, after=written.after))
        _cut(stack, written.after)


def _restored(found: History, entry: Entry) -> None:
    """A step that failed restores its files newest first, one entry each; what a write had ended stands again."""
    path, step = str(entry.get("path", "")), (str(entry.get("run", "")), str(entry.get("step", "")))
    stacks = found.if_it_fails.get(step, {}).get(path, [])
    if stacks:
        found.changes[path] = stacks.pop()


def _cut(stack: list[Change], state: str) -> None:
    back = next((n for n, change in enumerate(stack) if change.written.before == state), None)
    if back is not None:
        del stack[back:]


def _undone(found: History, undo: PastRun) -> None:
    if undo.pending:
        return  # the later one finds out by itself what is restored already
    mark = _mark(undo.before)
    runs = mark.get("runs")
    packages, names = bool(mark.get("packages")), {str(run) for run in (runs if isinstance(runs, list) else ())}
    found.undoing.clear()
    for run in found.runs.values():
        if run.id in names:
            run.config_undone = True
            run.packages_undone |= packages
    for stack in found.changes.values():
        stack[:] = [c for c in stack if c.run not in names or (goes_with_packages(c.written.path) and not packages)]


def _unknown(run: str, setups: list[PastRun]) -> UsageError:
    known = list(dict.fromkeys(r.id.rpartition(".")[0] or r.id for r in setups))
    return UsageError(
        f"--run {run!r} is not a run in this host's journal",
        evidence=f"its runs are {', '.join(known[-8:])}" if known else "the journal names no run",
        remedy="name one of them: that one and all later ones are undone; without --run all of them are",
    )
