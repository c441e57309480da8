"""CRI-O's main file and drop-ins by chance: nvidia is in force and the default, and all else has its bytes.

GPUNODE_CONFIGS=2000 by hand; a fault names its number. CRI-O itself is in no suite of Debian's, so it was not asked.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpunode.model.spec import RuntimeSpec
from tests.editing.toml_writer import Writer
from tests.engines import rewritten
from tests.engines.hosts import engine_facts
from tests.engines.test_containerd_generated import COMMENT, lines_gone
from tests.engines.test_crio import DIRECTORY, effective_in

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

COUNT = int(os.environ.get("GPUNODE_CONFIGS", "80"))
SEED = 20_261_123
PLACES = (
    "/etc/crio/crio.conf",
    f"{DIRECTORY}/10-crio.conf",
    f"{DIRECTORY}/50-site.conf",
    f"{DIRECTORY}/99-nvidia.toml",
)


def test_nvidia_is_in_force_and_nothing_else_changes() -> None:
    faults = [f"{number}: {fault}" for number in range(COUNT) for fault in judged(number)]
    assert not faults, "\n".join(faults[:20])


def judged(number: int) -> Iterator[str]:
    chance = random.Random(f"{SEED} {number}")
    values = {path: config(chance) for path in PLACES if chance.random() < 0.5}
    before = {path: Writer(chance).text(value) for path, value in values.items()}
    want = RuntimeSpec(default=chance.random() < 0.8)
    facts = engine_facts("crio", "1.33.1")
    result = rewritten.rewrite(facts, before, want)
    after = {**before, **{edit.path: edit.after for edit in result.edits}}
    if rewritten.rewrite(facts, after, want).changed:
        yield "a second run changes it again"
    (was, others), (default, runtimes) = effective_in(before), effective_in(after)
    if default != ("nvidia" if want.default else was):
        yield f"the default is {default}"
    if {n: t for n, t in runtimes.items() if n != "nvidia"} != {n: t for n, t in others.items() if n != "nvidia"}:
        yield "the other runtimes changed"
    for path, text in before.items():
        if without(tomllib.loads(text)) != without(tomllib.loads(after[path])):
            yield f"{path}: other values changed"
        if lost := Counter(COMMENT.findall(text)) - Counter(COMMENT.findall(after[path])):
            yield f"{path}: comments {sorted(lost)} are lost"
        yield from (f"{path}: the line {line!r} went" for line in lines_gone(text, after[path]))


def config(chance: random.Random) -> dict[str, Any]:
    runtimes = {name: runtime(chance, name) for name in ("crun", "runc", "kata", "nvidia") if chance.random() < 0.35}
    inner: dict[str, Any] = {"pids_limit": 0, "hooks_dir": ["/a", "/b"], "default_env": ["NOTE=a\n  b\n"]}
    inner = {key: value for key, value in inner.items() if chance.random() < 0.5}
    if runtimes:
        inner["runtimes"] = runtimes
    if chance.random() < 0.4:
        inner["default_runtime"] = chance.choice(("crun", "runc"))
    sections = {"runtime": inner, "image": {"pause_image": "registry.k8s.io/pause:3.9"}, "network": {"dirs": ["/opt"]}}
    return {"crio": {key: value for key, value in sections.items() if value and chance.random() < 0.8}}


def runtime(chance: random.Random, name: str) -> dict[str, Any]:
    path = "/opt/nvidia/nvidia-container-runtime" if name == "nvidia" else f"/usr/bin/{name}"
    table: dict[str, Any] = {"runtime_path": path, "runtime_type": "vm" if name == "kata" else "oci"}
    more = {"monitor_path": "/usr/libexec/crio/conmon", "allowed_annotations": ["a/b", "c"], "runtime_root": "/run/x"}
    return table | {key: value for key, value in more.items() if chance.random() < 0.4}


def without(plain: dict[str, Any]) -> dict[str, Any]:
    inner = plain.get("crio", {}).get("runtime", {})
    inner.pop("default_runtime", None)
    inner.get("runtimes", {}).pop("nvidia", None)
    return filled(plain)


def filled(table: dict[str, Any]) -> dict[str, Any]:
    """Without tables that hold nothing."""
    inner = {key: filled(value) if isinstance(value, dict) else value for key, value in table.items()}
    return {key: value for key, value in inner.items() if value != {}}
