"""What undo goes by (Step.for_undo), as the journal holds it with a step's begin."""

from __future__ import annotations

from typing import Any, get_args

from gpunode.apply.journal.entries import Entry
from gpunode.model.plan import ForGood, ForUndo

NOUVEAU = "kernel.nouveau"
ERASE = "undo.packages"
FOR_GOOD: dict[str, ForGood] = {
    "repo.prerequisites": "prerequisites",
    "mig.layout": "mig-layout",
    "secureboot.enrol": "signing-key",
}


def to_entry(known: ForUndo) -> dict[str, Any]:
    """What differs from a step of which undo needs to know nothing."""
    fields = {
        "engine": known.engine,
        "initramfs": known.initramfs,
        "for_good": known.for_good,
        "erases": known.erases,
        "restarts": known.restarts,
    }
    return {name: value for name, value in fields.items() if value}


def from_entry(entry: Entry) -> ForUndo:
    """Of a "step-begin"; one that an older gpunode wrote has only the step's id."""
    fields = entry.get("for_undo")
    if not isinstance(fields, dict):
        return of_older(str(entry.get("step", "")))
    kept = [word for word in get_args(ForGood) if word == fields.get("for_good")]
    initramfs, erases = (fields.get(name) is True for name in ("initramfs", "erases"))
    restarts = str(fields.get("restarts", ""))
    return ForUndo(str(fields.get("engine", "")), initramfs, kept[0] if kept else None, erases, restarts)


def of_older(step: str) -> ForUndo:
    """By the ids that steps had when the journal held nothing but those: "docker.default", "undo.docker.default"."""
    name = step.removeprefix("undo.")
    engine = name.removesuffix(".default") if name.endswith(".default") else ""
    return ForUndo(engine, name == NOUVEAU, FOR_GOOD.get(name), step == ERASE)
