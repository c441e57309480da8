"""What gpunode itself did and left here: packages, steps that were never closed, transactions that still run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from gpunode.foreign import read_json
from gpunode.model.facts import FailedStep, JournalFacts
from gpunode.model.files import WrittenFile
from gpunode.packages.pins import named_by
from gpunode.regex import regex

_SHA256 = regex("[0-9a-f]{64}")
ERROR_LIMIT = 500  # characters of a failed step's message


def parse_journal(text: str, units: Mapping[str, str], held: Collection[str] = ()) -> JournalFacts:
    """The tail of journal.jsonl (its entries are described in apply/journal/entries.py) and unit -> ActiveState.

    `held`: what is pinned now.

    {"kind": "step-begin", "run": "r1", "step": "driver.install"}
    {"kind": "step-end", "run": "r1", "step": "driver.install", "status": "done"}

    A last line that a power cut truncated is skipped: its entry never counted.
    """
    entries = [_entry(line) for line in text.splitlines()]
    open_steps: dict[tuple[str, str], None] = {}
    packages: set[str] = set()
    for entry in entries:
        key = (str(entry.get("run")), str(entry.get("step")))
        if entry.get("kind") == "step-begin":
            open_steps[key] = None
        elif entry.get("kind") == "step-end":
            open_steps.pop(key, None)
        elif entry.get("kind") == "command" and isinstance(names := entry.get("packages"), list):
            packages.update(map(str, names))
    running = tuple(sorted(u for u, state in units.items() if _is_transaction(u) and state in ("active", "activating")))
    steps = tuple(dict.fromkeys(step for _, step in open_steps))
    pinned = _pinned(entries, held)
    defaults, files = MappingProxyType(_defaults(entries)), MappingProxyType(_files(entries, steps))
    return JournalFacts(steps, running, frozenset(packages), defaults, pinned, files, _failed(entries))


def _failed(entries: Iterable[Mapping[str, object]]) -> FailedStep | None:
    """The first step of the last setup that failed; those after it are rolled back for its sake.

    {"kind": "step-end", "run": "r1", "step": "driver.install", "status": "failed", "error": "... E: Failed to fetch"}
    """
    found: FailedStep | None = None
    run, undo = "", False
    for entry in entries:
        if entry.get("kind") == "run-begin":
            found, run, undo = None, str(entry.get("run")), "undo" in _table(entry, "before")
        elif found is None and not undo and _fails(entry) and entry.get("run") == run:
            found = FailedStep(str(entry.get("step"))[:100], run[:100], str(entry.get("error"))[:ERROR_LIMIT])
    return found


def _fails(entry: Mapping[str, object]) -> bool:
    return entry.get("kind") == "step-end" and entry.get("status") in ("failed", "rollback-failed")


def _files(entries: Iterable[Mapping[str, object]], open_steps: Collection[str]) -> dict[str, WrittenFile]:
    """Files as the last setup left them; without those that a rollback, an undo or a command of gpunode's wrote since.

    {"kind": "file", "run": "r1", "step": "docker.default", "path": P, "after": SHA256, "before": SHA256 or "absent"}
    {"kind": "restore", "run": "r1", "step": "docker.default", "path": P}

    A step that is open may not have written what it announced.
    """
    undos: dict[str, list[object]] = {}
    found: dict[str, WrittenFile] = {}
    for entry in entries:
        kind, run, path = entry.get("kind"), str(entry.get("run")), str(entry.get("path"))
        if kind == "run-begin" and (undo := _table(_table(entry, "before"), "undo")):
            runs = undo.get("runs")
            undos[run] = runs if isinstance(runs, list) else []
        elif kind == "file" and run not in undos and str(entry.get("step")) not in open_steps:
            after, before = str(entry.get("after")), str(entry.get("before"))
            found.pop(path, None)
            if _SHA256.fullmatch(after):
                found[path] = WrittenFile(after, before, str(entry.get("step")), run)
        elif kind in ("file", "restore"):
            found.pop(path, None)
        elif kind == "command":
            files = entry.get("files")  # that it writes itself; a path in argv is often only read
            for word in map(str, files if isinstance(files, list) else ()):
                found.pop(word, None)
        elif kind == "run-end" and run in undos and entry.get("status") == "done":
            found = {path: file for path, file in found.items() if file.run not in undos[run]}
    return found


def _pinned(entries: Iterable[Mapping[str, object]], held: Collection[str]) -> frozenset[str]:
    """Those of `held` that were not pinned before the first setup, and that a command of one names since, or matches.

    {"kind": "run-begin", "run": "r1", "before": {"held": ["containerd.io"]}}
    {"kind": "command", "run": "r1", "step": "toolkit.hold", "argv": ["apt-mark", "hold", "nvidia-container-toolkit"]}
    """
    before: list[object] | None = None
    words: set[str] = set()
    for entry in entries:
        if before is None and isinstance(names := _table(entry, "before").get("held"), list):
            before = names
        if entry.get("kind") == "command" and isinstance(argv := entry.get("argv"), list):
            words.update(map(str, argv))
    fresh = set(held) - set(map(str, before)) if before is not None else set()
    return named_by(words, fresh)


def _defaults(entries: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """The default runtimes from before, of the engines that a setup configured since the last undo.

    {"kind": "run-begin", "run": "r1", "before": {"default_runtimes": {"docker": "runc"}, "handler": "nvidia"}}
    {"kind": "step-begin", "run": "r1", "step": "docker.default", "for_undo": {"engine": "docker"}}
    {"kind": "run-begin", "run": "u1", "before": {"undo": {"runs": ["r1"], "packages": false}}}
    """
    before: dict[str, Mapping[str, object]] = {}
    engines: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for entry in entries:
        run, step, ended = str(entry.get("run")), str(entry.get("step")), entry.get("status") == "done"
        kind = entry.get("kind")
        if kind == "run-begin":
            before[run] = _table(entry, "before")
        elif kind == "step-begin":
            engines[run, step] = str(_table(entry, "for_undo").get("engine", ""))
        elif kind == "step-end" and ended:
            old = _table(before.get(run, {}), "default_runtimes").get(engines.get((run, step), ""))
            if isinstance(old, str) and old != before[run].get("handler"):
                found[engines[run, step]] = old
        elif kind == "run-end" and ended and "undo" in before.get(run, {}):
            found.clear()
    return found


def _table(entry: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def _is_transaction(unit: str) -> bool:
    """The unit that goes on after a reboot is gpunode itself."""
    return unit.startswith("gpunode-") and unit != "gpunode-resume.service"


def _entry(line: str) -> dict[str, object]:
    try:
        entry = read_json(line, own=True)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
