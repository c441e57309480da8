"""Processes around the GPUs: which hang or are dead, and MPS."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpunode.facts.wire import Sections
from gpunode.foreign import whole_number
from gpunode.model.facts import MpsProcess, StuckProcess


def parse_uids(text: str) -> Mapping[str, int]:
    """`PID UID` of those that hold GPUs; "-" for one that has ended meanwhile:

    812 0
    """
    rows = (line.split() for line in text.splitlines())
    seen = ((row[0], whole_number(row[1])) for row in rows if len(row) == 2)
    return MappingProxyType({pid: uid for pid, uid in seen if uid is not None})


def parse_stuck(sections: Sections) -> tuple[StuckProcess, ...] | None:
    """`PID STATE SECONDS HOW COMMAND`; of a zombie, HOW is its parent that holds GPUs, or "threads":

    4242 D 31 holds python3
    4243 Z 31 4242 python3
    4250 Z 31 threads train
    """
    if not _was_read(sections, "stuck"):
        return None
    return tuple(filter(None, map(_stuck, sections.text("stuck").splitlines())))


def _stuck(line: str) -> StuckProcess | None:
    words = line.split(" ", 4)
    if len(words) != 5 or words[1] not in ("D", "Z"):
        return None
    pid, seconds = whole_number(words[0]), whole_number(words[2])
    if pid is None or seconds is None:
        return None
    return StuckProcess(pid, words[4], words[1], seconds, whole_number(words[3]))


def parse_mps(sections: Sections) -> tuple[MpsProcess, ...] | None:
    """`PID UID host|container`, twenty at most:

    4711 1000 host
    """
    if not _was_read(sections, "mps"):
        return None
    rows = (line.split() for line in sections.text("mps").splitlines())
    seen = ((whole_number(row[0]), row) for row in rows if len(row) == 3)
    return tuple(MpsProcess(pid, whole_number(row[1]), row[2] == "container") for pid, row in seen if pid is not None)


def _was_read(sections: Sections, name: str) -> bool:
    section = sections.commands.get(name)
    return section is not None and section.rc == 0
