"""Xids and SXids: what the driver's numbers mean, whether the node is broken by them, and what is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, get_args

from gpunode.catalog.rows import Row, rows
from gpunode.remedy import RepairAction
from gpunode.values import dataclass

# "message": the line in the log says itself how bad it is.
LogSeverity = Literal["error", "warning", "none", "message"]
SEVERITIES: tuple[LogSeverity, ...] = get_args(LogSeverity)
ACTIONS = tuple(action.value for action in RepairAction)


@dataclass(frozen=True)
class LogCode:
    code: int
    severity: LogSeverity
    action: RepairAction
    meaning: str  # "the GPU does not answer on the PCIe bus"
    source: str
    checked: str
    grade: str

    @property
    def of_a_program(self) -> bool:
        """The program's owner is to look, and nobody has to do anything about the node."""
        return self.severity == "warning" and self.action is RepairAction.NONE


@cache
def xids() -> Mapping[int, LogCode]:
    """By their number. Raises UsageError that names row and key of a fault in the file."""
    return _table("xids")


@cache
def sxids() -> Mapping[int, LogCode]:
    return _table("sxids")


@cache
def limits() -> Mapping[str, int]:
    """Counter -> the most since boot that needs nobody's look."""
    return MappingProxyType(dict(_limit(row) for row in rows("xids.yaml", "limits", "name")))


def _table(key: str) -> Mapping[int, LogCode]:
    found: dict[int, LogCode] = {}
    for row in rows("xids.yaml", key, "code"):
        one = _code(row)
        if one.code in found:
            raise row.fault("code", f"{one.code} is listed twice")
        found[one.code] = one
    return MappingProxyType(found)


def _code(row: Row) -> LogCode:
    severity, action = row.one_of("severity", SEVERITIES), RepairAction(row.text("action", ACTIONS))
    found = LogCode(row.number("code"), severity, action, row.text("meaning"), *row.provenance())
    row.done()
    return found


def _limit(row: Row) -> tuple[str, int]:
    found = row.text("name"), row.number("most")
    row.provenance()
    row.done()
    return found
