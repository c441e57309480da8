"""What this host's journal and backups record about the past, read for an undo. Writes nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gpunode.apply.journal.entries import Entry, Written, parse_journal
from gpunode.apply.journal.history import Change, History, PastRun, history
from gpunode.apply.journal.snapshot import units
from gpunode.apply.paths import STATE, inventory_path
from gpunode.apply.script import Host, parse_reply
from gpunode.errors import ConfigFileError, TransportError
from gpunode.foreign import whole_number
from gpunode.model.files import FileFacts
from gpunode.model.past import ABSENT, Past, PastFile
from gpunode.model.plan import ForGood
from gpunode.packages.registry import goes_with_packages
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.transport.base import Transport

FILE = f"{STATE}/journal.jsonl"
READ_S = 120.0
MOST_BYTES = 256 << 20


def read_past(transport: Transport, *, run: str | None = None, packages: bool = False) -> Past:
    """What is to be undone on this host: everything, or `run` and what came after it.

    `packages`: packages, pins and repositories as well. Two round trips: the journal, then the files and backups that
    it names. An empty Past when there is no journal. Raises UsageError for a run that is not in the journal,
    ConfigFileError for a journal that cannot be read, TransportError when the host is unreachable.
    """
    text = read_journal(transport)
    if text is None:
        return Past()
    entries = parse_journal(text)
    unread = sum(bool(line.strip()) for line in text.splitlines()) - len(entries)
    if unread and not entries:
        raise ConfigFileError(
            f"{transport.target}: gpunode's journal holds nothing that gpunode wrote",
            evidence=f"{FILE}: none of its {unread} lines is a journal entry",
            remedy=f"restore {FILE} from a backup of the host; the old files themselves are in {STATE}/backup",
        )
    found = history(entries)
    runs = found.since(run)
    config = [r for r in runs if not r.config_undone]
    wanted = [*config, *(r for r in runs if packages and r not in config)]
    stacks = _stacks(found, {r.id for r in config}, {r.id for r in runs} if packages else set())
    inventory = next((inventory_path(r.id) for r in runs if any(c.get("packages") for c in r.done_commands)), "")
    files, have_inventory = _files(transport, stacks, found.undoing, inventory if packages else "")
    return Past(
        journal=True,
        runs=tuple(r.id for r in runs if r in wanted),
        files=files,
        engines=_engines(config),
        defaults=_defaults(config),
        handler=_handler(config or runs),
        services=_services(config, "enable"),
        masked=_services(config, "mask"),
        unread=unread,
        last_undo=found.last_undo,
        cut_off=frozenset(known.engine for known in found.cut_off.values() if known.engine),
        inventory=inventory if have_inventory else "",
        erasing=any(known.erases for known in found.cut_off.values()),
        wrote=(*_wrote(config, along=False), *(_wrote(runs, along=True) if packages else ())),
        answers=_answers(runs) if packages else (),
        for_good=_for_good(config),
        **_packages(runs),
    )


def read_journal(transport: Transport) -> str | None:
    """The journal's text; None when this host has none. Raises ConfigFileError when it may not be read."""
    text, size = b"", 1
    while len(text) < size:
        word, size, piece = _piece(transport, len(text))
        if word != "journal":
            return None
        if not piece:
            break  # it was made shorter meanwhile
        text += piece
    return text.decode("utf-8", "surrogateescape")


def _piece(transport: Transport, start: int) -> tuple[str, int, bytes]:
    """What there is, the journal's size, and some of its bytes from `start` on: an answer has a limit, and it grows."""
    done = Host(transport).run("journal/read", str(start), timeout_s=READ_S)
    word, rest = parse_reply(done)
    if word == "denied":
        raise ConfigFileError(
            f"{transport.target}: gpunode's journal cannot be read: permission denied",
            evidence=f"{FILE} is for root alone",
            remedy="run gpunode as root, or with sudo on the host",
        )
    size = min(whole_number(rest) or 0, MOST_BYTES)
    return word, size, done.stdout.partition(b"\n")[2]


def _stacks(found: History, config: set[str], packages: set[str]) -> list[list[Change]]:
    """Per path the changes that are undone, oldest first; paths in the order of their first change."""
    stacks = []
    for stack in found.changes.values():
        runs = packages if stack and goes_with_packages(stack[0].written.path) else config
        first = next((n for n, change in enumerate(stack) if change.run in runs), None)
        if first is not None:
            stacks.append(stack[first:])
    return stacks


def _files(
    transport: Transport, stacks: Sequence[Sequence[Change]], undoing: Mapping[str, Sequence[Written]], inventory: str
) -> tuple[tuple[PastFile, ...], bool]:
    """The files with their bytes then and now, and whether the inventory is there."""
    if not stacks and not inventory:
        return (), False
    first = [stack[0].written for stack in stacks]
    interim = [written for one in first for written in _interim(one, undoing.get(one.path, ()))]
    words = [word for written in (*first, *interim) for word in (written.path, written.backup or "-", written.run_as)]
    done = Host(transport).run("journal/past", inventory or "-", *words, timeout_s=READ_S)
    _, have = parse_reply(done)
    rest = done.stdout.partition(b"\n")[2]
    files = []
    for stack in stacks:
        tidy = not rest.startswith(b"absent\n")  # the file is there, or the directory above it is empty
        now, rest = _one(stack[0].written.path, rest)
        old, rest = _one(stack[0].written.backup, rest)
        own = _interim(stack[0].written, undoing.get(stack[0].written.path, ()))
        linked = {written.after for written in own if written.before == stack[0].written.before}
        files.append(_file(stack, now, old, linked, tidy=tidy))
    goals: dict[tuple[str, str], FileFacts] = {}
    for written in interim:
        _, rest = _one(written.path, rest)
        goal, rest = _one(written.path if written.backup else "", rest)
        goals.setdefault((written.path, written.after), goal if written.backup else FileFacts(written.path))
    return tuple(_on_its_way(file, goals) for file in files), have == "yes"


def _interim(first: Written, undoing: Sequence[Written]) -> list[Written]:
    """What an interrupted undo wrote over a file that it had restored already, to write that one again after it.

    The daemon has to load such a text first (Docker.undo). Its backup is what was restored.
    """
    reached, found = {first.before}, list[Written]()
    for written in undoing:
        if written.before in reached and written.after not in reached:
            found.append(written)
        else:
            reached.add(written.after)
    return found


def _on_its_way(file: PastFile, goals: Mapping[tuple[str, str], FileFacts]) -> PastFile:
    goal = goals.get((file.path, file.sha256_now))
    lost = goal is not None and goal.sha256 is None and goal.unread is not None
    return file if goal is None or lost else replace(file, interim=goal)


def _one(path: str, answer: bytes) -> tuple[FileFacts, bytes]:
    """One `show` of past.sh, and what comes after it."""
    head, _, rest = answer.partition(b"\n")
    words = head.decode("utf-8", "replace").split(" ", 1)
    if words[0] == "absent":
        return FileFacts(path), rest
    if words[0] == "unread":
        return FileFacts(path, unread=words[-1]), rest
    size, mode = (whole_number(words[1]), words[0]) if len(words) == 2 else (None, "")
    if size is None or not 0 <= size < len(rest) or not re.fullmatch("[0-7]{1,6}", mode):
        raise TransportError(
            "the host's answer about its old files was truncated",
            evidence=f"at {path}: {head[:80]!r}",
            remedy=Remedy(RepairAction.WAIT, "run ", gpunode("undo"), " again; nothing was changed"),
        )
    text, rest = rest[:size], rest[size + 1 :]
    sha = hashlib.sha256(text).hexdigest()
    return FileFacts(path, text.decode("utf-8", "surrogateescape"), sha, int(mode, 8)), rest


def _file(stack: Sequence[Change], now: FileFacts, old: FileFacts, interim: Collection[str], *, tidy: bool) -> PastFile:
    """`interim`: hashes of what an interrupted undo left; a setup since found that, and nobody else wrote it."""
    first, last = stack[0].written, stack[-1].written
    known = ({earlier.written.after, *interim} for earlier in stack)
    whole = all(later.written.before in own for own, later in zip(known, stack[1:], strict=False))
    return PastFile(
        path=first.path,
        step=stack[0].step,
        for_undo=stack[0].for_undo,
        before=first.before,
        expected=last.after if whole else None,
        old=old.text if first.before != ABSENT and old.sha256 == first.before else None,
        now=now,
        backup=first.backup,
        mode=int(first.mode or "644", 8),
        owner=f"{first.uid}:{first.gid}",
        run_as=first.run_as,
        directories=first.directories if first.before == ABSENT and tidy else 0,
    )


def _engines(runs: Sequence[PastRun]) -> tuple[str, ...]:
    """The engines whose configuration these runs set."""
    engines = (known.engine for run in runs for known in run.done_steps.values())
    return tuple(dict.fromkeys(filter(None, engines)))


def _for_good(runs: Sequence[PastRun]) -> Mapping[ForGood, str]:
    steps = ((step, known.for_good) for run in runs for step, known in run.done_steps.items())
    return MappingProxyType({what: step for step, what in steps if what})


def _handler(runs: Sequence[PastRun]) -> str:
    return next((str(r.before["handler"]) for r in reversed(runs) if r.before.get("handler")), "nvidia")


def _defaults(runs: Sequence[PastRun]) -> Mapping[str, str]:
    """Engine -> the default it last had that was not gpunode's: someone may have chosen another between two setups."""
    handler, found = _handler(runs), dict[str, str]()
    for run in runs:
        for engine, default in _table(run.before, "default_runtimes").items():
            if isinstance(default, str) and (default != handler or engine not in found):
                found[engine] = default
    return MappingProxyType(found)


def _services(runs: Sequence[PastRun], verb: str) -> Mapping[str, tuple[str, str]]:
    """What was so before, of the units that setup's own commands enabled, or masked."""
    found: dict[str, tuple[str, str]] = {}
    for run in runs:
        before = _table(run.before, "services")
        for argv in (_words(c, "argv") for c in run.done_commands):
            for unit in units(argv) if argv[1:2] == (verb,) else ():
                if isinstance(state := before.get(unit), list) and state:
                    found.setdefault(unit, (str(state[0]), str(state[-1])))
    return MappingProxyType(found)


def _packages(runs: Sequence[PastRun]) -> dict[str, Any]:
    """What the runs' commands did to packages; the first run that touched one knows its version before."""
    versions: dict[str, str | None] = {}
    words: set[str] = set()
    for run in runs:
        had = _table(run.before, "packages")
        for command in run.done_commands:
            for name in _words(command, "packages"):
                if name in had:
                    versions.setdefault(name, had[name])
            words.update(_words(command, "argv"))
    held: list[object] = next((r.before["held"] for r in runs if isinstance(r.before.get("held"), list)), [])
    return {
        "packages": MappingProxyType(versions),
        "words": frozenset(words),
        "held": frozenset(map(str, held)),
    }


def _wrote(runs: Sequence[PastRun], *, along: bool) -> tuple[str, ...]:
    """Files that commands wrote and that were not there before; `along`: those that go with the packages."""
    fresh: dict[str, bool] = {}
    for run in runs:
        was_there = _table(run.before, "files")
        for path in (path for command in run.done_commands for path in _words(command, "files")):
            fresh.setdefault(path, not was_there.get(path, True))
    return tuple(path for path, new in fresh.items() if new and goes_with_packages(path) == along)


def _answers(runs: Sequence[PastRun]) -> tuple[tuple[str, str], ...]:
    return tuple((str(a.get("description", "")), str(a.get("text", ""))) for run in runs for a in run.done_answers)


def _table(entry: Entry, key: str) -> dict[str, Any]:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def _words(entry: Entry, key: str) -> tuple[str, ...]:
    value = entry.get(key)
    return tuple(map(str, value)) if isinstance(value, list) else ()
