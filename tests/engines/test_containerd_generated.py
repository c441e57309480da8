"""Configurations by chance, judged by an oracle of its own: only what is gpunode's changes, in values and in bytes.

GPUNODE_CONFIGS=2000 by hand; a fault names its number, and `generated(SEED, number)` is the case again.
"""

from __future__ import annotations

import copy
import difflib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpunode.errors import GpunodeError
from tests.engines.containerd_generated import SEED, Case, generated
from tests.engines.test_containerd import DROP_IN, PATH, V2, V3, rewrite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

COUNT = int(os.environ.get("GPUNODE_CONFIGS", "150"))
CRI = ("cri", V2, V3)
COMMENT = re.compile(r"#(?: |# )?c(\d+)\.")
# What a line has to have in it so that gpunode may write it anew or take it out.
OURS = ("default_runtime", "disabled_plugins", "imports", "enable_cdi", "nvidia", "version")


def edited(case: Case) -> dict[str, str] | str:
    """The files afterwards; or why it was refused."""
    others = {path: text for path, text in case.files.items() if path != PATH}
    imports = tuple(others)
    try:
        first = rewrite(case.files[PATH], case.daemon, case.want, files=others, imports=imports)
    except GpunodeError as refused:
        return str(refused.problem)
    after = {**case.files, **{edit.path: edit.after for edit in first.edits}}
    imports = tuple(path for path in after if path != PATH)
    again = rewrite(after[PATH], case.daemon, case.want, files={p: after[p] for p in imports}, imports=imports)
    assert not again.changed, "a second run changes it again"
    return after


def test_only_what_is_gpunodes_changes() -> None:
    faults, refused = [], Counter[str]()
    for number in range(COUNT):
        case = generated(SEED, number)
        after = edited(case)
        if isinstance(after, str):
            refused[re.sub(r"/\S+", "FILE", after)] += 1
            continue
        faults += [f"{number}: {fault}" for fault in judged(case, after)]
    assert not faults, "\n".join(faults[:20])
    assert set(refused) <= REFUSED, refused


# Rightly: containerd would not load CRI after a restart, or not start, or not read our drop-in.
REFUSED = {
    "FILE registry.mirrors cannot be set together with registry.config_path",
    "FILE imports FILE which is not there",
}


def judged(case: Case, after: dict[str, str]) -> Iterator[str]:
    converted = case.schema == 1 and case.daemon > "2"
    for path, text in after.items():
        before = case.files.get(path)
        if before is None:
            yield from () if path == DROP_IN else (f"{path} is new",)
            continue
        old, new = (tomllib.loads(one.removeprefix("\ufeff")) for one in (before, text))
        assert old == case.values[path], "the generator wrote something else"
        if others(old, converted=converted) != others(new, converted=converted):
            yield f"{path}: other values changed"
        lost = Counter(COMMENT.findall(before)) - Counter(COMMENT.findall(text))
        if lost:
            yield f"{path}: comments {sorted(lost)} are lost"
        if not converted:
            yield from (f"{path}: the line {line!r} went" for line in lines_gone(before, text))
    engines = [engine(tomllib.loads(after[path].removeprefix("\ufeff"))) for path in read_in_order(case, after)]
    named = [found["default_runtime_name"] for found in engines if "default_runtime_name" in found]
    if case.want.default and named[-1:] != ["nvidia"]:
        yield f"the default is {named[-1:]}"
    if not any("nvidia" in found.get("runtimes", {}) for found in engines):
        yield "nvidia is nowhere"


def read_in_order(case: Case, after: dict[str, str]) -> list[str]:
    """The files whose CRI section counts: all of them on 2.x, on 1.x the last that has one."""
    imports = tomllib.loads(after[PATH].removeprefix("\ufeff")).get("imports", [])
    reads = [path for path in sorted(after) if path != PATH and any(_names(pattern, path) for pattern in imports)]
    order = [PATH, *reads]
    if case.daemon > "2":
        return order
    return [path for path in order if _cri(tomllib.loads(after[path].removeprefix("\ufeff")))][-1:]


def _names(pattern: str, path: str) -> bool:
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path))


def _cri(config: dict[str, Any]) -> dict[str, Any]:
    return next((config["plugins"][name] for name in CRI if name in config.get("plugins", {})), {})


def engine(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _cri(config).get("containerd", {})
    return found


def others(config: dict[str, Any], *, converted: bool) -> dict[str, Any]:
    """What gpunode must leave as it is. Of a converted file without the names of its plugins, which are longer now."""
    rest = copy.deepcopy(config)
    rest.pop("version", None)
    rest.pop("imports", None)
    rest["disabled_plugins"] = [p.rpartition(".")[2] for p in rest.get("disabled_plugins", []) if p not in CRI]
    for name in CRI:
        cri = rest.get("plugins", {}).get(name, {})
        cri.pop("enable_cdi", None)
        inner = cri.get("containerd", {})
        inner.pop("default_runtime_name", None)
        inner.pop("default_runtime", None)
        inner.get("runtimes", {}).pop("nvidia", None)
        if not inner.get("runtimes", {}).get("runc", {}).keys() - {"runtime_type"}:
            inner.get("runtimes", {}).pop("runc", None)
    if converted and "plugins" in rest:
        rest["plugins"] = {name.rpartition(".")[2]: table for name, table in rest["plugins"].items()}
    filled: dict[str, Any] = _filled(rest)
    return filled


def _filled(value: Any) -> Any:
    """Without tables that hold nothing."""
    if isinstance(value, dict):
        return {key: inner for key, one in value.items() if (inner := _filled(one)) not in ({}, [])}
    return repr(value)


def lines_gone(before: str, after: str) -> list[str]:
    """Lines, with their ends, that went or changed though they are nobody's but the user's.

    A line to which only something was added, as an entry of an inline table, is still there.
    """
    old, new = (re.split(r"(?<=\n)", text) for text in (before.removeprefix("\ufeff"), after))
    may_go = [False] * len(old)
    header = ""
    for at, line in enumerate(old):
        header = line if re.match(r"\s*\[", line) else header
        may_go[at] = not line.strip() or any(word in line for word in OURS) or any(word in header for word in OURS)
        may_go[at] |= line.partition("#")[0].strip().rstrip(",").strip("\"'") in CRI  # an item of disabled_plugins
    gone = []
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("delete", "replace"):
            there = new[new_start:new_end]
            gone += [old[at] for at in range(start, end) if not may_go[at] and not any(_in(old[at], n) for n in there)]
    return gone


def _in(line: str, longer: str) -> bool:
    """Whether all letters of `line` are in `longer`, in their order."""
    letters = iter(longer)
    return all(letter in letters for letter in line)
