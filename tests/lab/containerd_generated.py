"""Configurations by chance (tests/engines/containerd_generated.py) put to the daemons: before and after the edit.

What loaded before loads after, nvidia is the default where it was asked for, and everything else is as it was: by
`containerd config dump`, and by CRI of the daemon that was started on them. GPUNODE_CONFIGS=2000 by hand.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.engines.containerd_generated import SEED, Case, generated
from tests.engines.test_containerd_generated import edited, engine, others

from .host import Host

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

COUNT = int(os.environ.get("GPUNODE_CONFIGS", "24"))  # for the three daemons together
BATCH = 60  # files in one call, which may take 280 s
USUAL: tuple[object, ...] = ("", 0, False, None, [], {}, "podsandbox", "io.containerd.runc.v2")


def put_to(host: Host, version: str) -> tuple[Counter[str], list[str]]:
    """(how many ended how, what is wrong in sentences that begin with the case's number)."""
    outcomes, faults = Counter[str](), []
    cases = {}
    for number in range(COUNT):
        case = generated(SEED, number)
        if case.daemon == version:
            after = edited(case)
            outcomes["refused"] += isinstance(after, str)
            if not isinstance(after, str):
                cases[number] = case, after
    numbers = list(cases)
    for at in range(0, len(numbers), BATCH):
        said = _asked(host, {number: cases[number] for number in numbers[at : at + BATCH]})
        for number in numbers[at : at + BATCH]:
            before, after_ = said[f"{number} before"], said[f"{number} after"]
            found = [f"{version} {number}: {fault}" for fault in judged(cases[number][0], before, after_)]
            outcomes[_outcome(before, after_) if not found else "fault"] += 1
            faults += found
    return outcomes, faults


def _asked(host: Host, cases: dict[int, tuple[Case, dict[str, str]]]) -> dict[str, dict[str, Any]]:
    asked = []
    for number, (case, after) in cases.items():
        asked.append({"name": f"{number} before", "files": case.files, "dump": True})
        asked.append({"name": f"{number} after", "files": after, "dump": True})
    done = host.nsrun("cd /root && python3 -m starts.containerd_starts", input=json.dumps(asked), timeout=280)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


def _outcome(before: dict[str, Any], after: dict[str, Any]) -> str:
    if before["config"] is not None:
        return "loaded before and after"
    return "loads only after" if after["config"] is not None else "loads neither before nor after"


def judged(case: Case, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    if before["config"] is None:
        return  # CRI was off, or the daemon refuses the file
    if after["config"] is None:
        yield f"CRI does not answer afterwards: {after['log'][-600:]}"
        return
    old, new = (tomllib.loads(one["dump"]) for one in (before, after))
    default = after["config"]["containerd"]["defaultRuntimeName"]
    if default != ("nvidia" if case.want.default else before["config"]["containerd"]["defaultRuntimeName"]):
        yield f"the default is {default}"
    lost = {"runc", *before["config"]["containerd"]["runtimes"]} - set(after["config"]["containerd"]["runtimes"])
    if lost - {"default"}:  # 1.x makes a handler of the old table, which gpunode takes out
        yield f"{lost} is gone"
    if case.schema == 1 and case.daemon > "2":
        return  # it reads a plugin's settings from there only once they are in version 2, as gpunode says
    if _told(others(old, converted=False)) != _told(others(new, converted=False)):
        yield f"others' settings changed: {_told(others(old, converted=False))} {_told(others(new, converted=False))}"
    if _told(_runc(old)) != _told(_runc(new)):
        yield f"runc was {_runc(old)} and is {_runc(new)}"


def _runc(dump: dict[str, Any]) -> Any:
    return engine(dump).get("runtimes", {}).get("runc", {})


def _told(value: Any) -> Any:
    """Without the values that a setting has when nothing is said."""
    if isinstance(value, dict):
        return {key: inner for key, one in value.items() if (inner := _told(one)) not in USUAL}
    return value
