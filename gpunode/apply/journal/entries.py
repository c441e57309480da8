"""What was done to a host, written there before it is done: /var/lib/gpunode/journal.jsonl, append-only, 0600, flushed.

One JSON object a line:

    {"kind": "run-begin",  "run": R, "schema": 1, "before": {...}}       from snapshot.py; {"undo": {...}} of an undo
    {"kind": "step-begin", "run": R, "step": "docker.default", "title": ...,
                           "for_undo": {"engine": "docker"}}     what undo goes by; for_undo.py reads it
    {"kind": "file",       "run": R, "step": S, "path": P, "after": SHA|"absent", "before": SHA|"absent",
                           "backup": PATH, "mode": "644", "uid": 0, "gid": 0, "directories": 0}     made above it;
                           "run_as": "1000:1000" where a user's own file was written as that user
    {"kind": "command",    "run": R, "step": S, "argv": [...]}     and packages, holds, files that it touches
    {"kind": "answer",     "run": R, "step": S, "description": ..., "text": ...}     of a command whose output is kept
    {"kind": "restore",    "run": R, "step": S, "path": P}       once the old bytes are back, or were never gone
    {"kind": "step-end",   "run": R, "step": S, "status": "done" | "failed" | "rollback-failed" | "superseded"}
    {"kind": "run-end",    "run": R, "status": "done" | "failed" | "stopped"}

A step with a begin and no end was interrupted. The journal is for undo and for resuming such a step, never for
"already installed": the machine itself answers that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from gpunode.foreign import read_json, whole_number
from gpunode.masking import masked
from gpunode.values import dataclass

Entry = dict[str, Any]
Mirror = Callable[[str], None]


@dataclass(frozen=True)
class Written:
    """One file as it was before gpunode changed it."""

    path: str
    before: str  # sha256, or "absent"
    after: str
    backup: str = ""  # path of the old bytes on the host
    mode: str = ""  # octal, "644"
    uid: int = 0
    gid: int = 0
    directories: int = 0  # how many directories above it were made
    run_as: str = ""  # "UID:GID" of the user who wrote it for gpunode; "": root

    @classmethod
    def announced(cls, entry: Entry) -> Written | None:
        """None for a line that is damaged: what it announced cannot be told."""
        try:
            return cls.from_entry(entry)
        except (KeyError, ValueError):
            return None

    @classmethod
    def from_entry(cls, entry: Entry) -> Written:
        """Raises KeyError or ValueError when the entry is not one of ours."""
        mode = str(entry.get("mode", ""))
        if not re.fullmatch("[0-7]{0,6}", mode):
            raise ValueError("mode is not octal")
        uid, gid, directories = (_number(entry, key) for key in ("uid", "gid", "directories"))
        return cls(
            path=str(entry["path"]),
            before=str(entry["before"]),
            after=str(entry["after"]),
            backup=str(entry.get("backup", "")),
            mode=mode,
            uid=uid,
            gid=gid,
            directories=directories,
            run_as=str(entry.get("run_as", "")),
        )


def _number(entry: Entry, key: str) -> int:
    number = whole_number(str(entry.get(key, 0)))
    if number is None or number < 0:
        raise ValueError(f"{key} is no number")
    return number


class Journal:
    """Entries of one run, waiting for the next script that takes them along (it appends and flushes before it acts)."""

    def __init__(self, run_id: str, mirror: Mirror | None = None) -> None:
        self.run_id = run_id
        self._mirror = mirror
        self._pending: list[str] = []
        self._number = 0

    def number(self) -> int:
        """1, 2, 3 ...: tells this run's commands apart."""
        self._number += 1
        return self._number

    def add(self, kind: str, **fields: object) -> None:
        """`run=` in fields is for another run than this one.

        A tool's message about its failure is there for people: secrets are masked, for entries travel in command lines.
        """
        if isinstance(fields.get("error"), str):
            fields["error"] = masked(str(fields["error"]))
        line = json.dumps({"kind": kind, "run": self.run_id, **fields})
        self._pending.append(line)
        self.copy(line)

    def copy(self, line: str) -> None:
        """Copy a line of the host's own journal to the controller."""
        if self._mirror:
            self._mirror(line)

    def pending(self) -> str:
        """Lines that must reach the host before the next act; `delivered` forgets them once they have."""
        return "\n".join(self._pending)

    def delivered(self) -> None:
        self._pending.clear()

    def head(self, kind: str, **fields: object) -> str:
        """An entry whose end only the host can write (what was there before): JSON without its closing brace."""
        return json.dumps({"kind": kind, "run": self.run_id, **fields})[:-1]


# What journals that are on hosts already call them: a user's file must not come back as root's for a name.
EARLIER = {"folders": "directories", "hands": "run_as", "says": "description"}


def parse_journal(text: str) -> tuple[Entry, ...]:
    """Entries in order. A line truncated by a power cut is skipped: what it announced had not begun."""
    entries = []
    for line in text.splitlines():
        try:
            entry = read_json(line, own=True)
        except ValueError:
            continue
        if isinstance(entry, dict) and "kind" in entry:
            entries.append({EARLIER.get(str(name), str(name)): value for name, value in entry.items()})
    return tuple(entries)


def open_steps(entries: Iterable[Entry]) -> dict[tuple[str, str], tuple[Written, ...]]:
    """(run, step) of every step that began and never ended -> the files it had announced, in order."""
    found: dict[tuple[str, str], tuple[Written, ...]] = {}
    for entry in entries:
        key = (str(entry.get("run", "")), str(entry.get("step", "")))
        if entry["kind"] == "step-begin":
            found.setdefault(key, ())
        elif entry["kind"] == "step-end":
            found.pop(key, None)
        elif entry["kind"] == "file" and key in found:
            written = Written.announced(entry)
            found[key] = (*found[key], *((written,) if written else ()))
    return found
