"""What gpunode itself did and left here: packages, steps that were never closed, transactions that still run."""

from __future__ import annotations

from collections.abc import Mapping

from gpunode.foreign import read_json
from gpunode.model.facts import JournalFacts


def parse_journal(text: str, units: Mapping[str, str]) -> JournalFacts:
    """The tail of journal.jsonl (its entries are described in apply/journal/entries.py) and unit -> ActiveState.

    {"kind": "step-begin", "run": "r1", "step": "driver.install"}
    {"kind": "step-end", "run": "r1", "step": "driver.install", "status": "done"}

    A last line that a power cut truncated is skipped: its entry never counted.
    """
    open_steps: dict[tuple[str, str], None] = {}
    packages: set[str] = set()
    for line in text.splitlines():
        entry = _entry(line)
        key = (str(entry.get("run")), str(entry.get("step")))
        if entry.get("kind") == "step-begin":
            open_steps[key] = None
        elif entry.get("kind") == "step-end":
            open_steps.pop(key, None)
        elif entry.get("kind") == "command" and isinstance(names := entry.get("packages"), list):
            packages.update(map(str, names))
    running = tuple(sorted(u for u, state in units.items() if _is_transaction(u) and state in ("active", "activating")))
    return JournalFacts(tuple(dict.fromkeys(step for _, step in open_steps)), running, frozenset(packages))


def _is_transaction(unit: str) -> bool:
    """The unit that goes on after a reboot is gpunode itself."""
    return unit.startswith("gpunode-") and unit != "gpunode-resume.service"


def _entry(line: str) -> dict[str, object]:
    try:
        entry = read_json(line, own=True)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}
