"""Configurations by chance (tests/engines/containerd_generated.py) put to the daemons: before and after the edit.

What loaded before loads after, nvidia is the default where it was asked for, and everything else is as it was: by
`containerd config dump`, and by CRI of the daemon that was started on them. GPUNODE_CONFIGS=2000 by hand.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.engines.containerd_generated import SEED, Case, generated
from tests.engines.test_containerd import PATH, V2, V3
from tests.engines.test_containerd_generated import edited

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
    old, new = before["config"]["containerd"], after["config"]["containerd"]
    if new["defaultRuntimeName"] != _default(case, old):
        yield f"the default is {new['defaultRuntimeName']}"
    lost = {"runc", *old["runtimes"]} - set(new["runtimes"]) - {"default"}
    if lost:  # 1.x makes a handler of the old default's table, which gpunode takes out
        yield f"{lost} is gone"
    if not _was_ignored(case):
        yield from judged_dumps(tomllib.loads(before["dump"]), tomllib.loads(after["dump"]))


def _default(case: Case, old: dict[str, Any]) -> str:
    """Which handler has to be the default afterwards."""
    if case.want.default:
        return "nvidia"
    engine = case.values[PATH].get("plugins", {}).get("cri", {}).get("containerd", {})
    return str(engine.get("default_runtime_name", "runc") if _was_ignored(case) else old["defaultRuntimeName"])


def _was_ignored(case: Case) -> bool:
    """2.x reads a plugin's settings of a version 1 file only once they are in version 2, as gpunode says."""
    return case.schema == 1 and case.daemon > "2"


def judged_dumps(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What `config dump` says of what is not gpunode's."""
    was, now = (rest(dump) for dump in (old, new))
    for key in sorted({*was, *now}):
        if was.get(key) != now.get(key):
            yield f"{key} was {was.get(key)} and is {now.get(key)}"
    runc, kept = (_told(runtimes(dump).get("runc", {})) for dump in (old, new))
    if "runc" in runtimes(old) and runc != kept:
        yield f"runc was {runc} and is {kept}"


def runtimes(dump: dict[str, Any]) -> dict[str, Any]:
    """Of the table in force: in a dump of version 3 an empty one of version 2 stands as well."""
    found = (dump["plugins"][name] for name in (V3, V2) if name in dump["plugins"])
    cri: dict[str, Any] = next(found, {})
    handlers: dict[str, Any] = cri.get("containerd", {}).get("runtimes", {})
    return handlers


def rest(dump: dict[str, Any]) -> dict[str, Any]:
    """What must be as it was: plugins and other settings by their names, without the values they have anyway."""
    left = {key: value for key, value in dump.items() if key not in ("version", "imports", "disabled_plugins")}
    left |= {f"plugins.{name}": copy.deepcopy(table) for name, table in left.pop("plugins", {}).items()}
    for name in (V2, V3):
        cri = left.get(f"plugins.{name}", {})
        cri.pop("enable_cdi", None)
        inner = cri.get("containerd", {})
        for key in ("default_runtime_name", "default_runtime"):
            inner.pop(key, None)
        for handler in ("nvidia", "runc"):
            inner.get("runtimes", {}).pop(handler, None)
    told: dict[str, Any] = _told(left)
    return told


def _told(value: Any) -> Any:
    """Without the values that a setting has when nothing is said."""
    if isinstance(value, dict):
        return {key: inner for key, one in value.items() if (inner := _told(one)) not in USUAL}
    return value
