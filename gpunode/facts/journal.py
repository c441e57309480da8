"""What gpunode itself did and left here: packages, steps that were never closed, transactions that still run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpunode.foreign import read_json
from gpunode.model.facts import JournalFacts


def parse_journal(text: str, units: Mapping[str, str]) -> JournalFacts:
    """The tail of journal.jsonl (its entries are described in apply/journal/entries.py) and unit -> ActiveState.

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
    return JournalFacts(steps, running, frozenset(packages), MappingProxyType(_defaults(entries)))


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
