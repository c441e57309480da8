"""The pairs in docker/: what a daemon.json was, and what it becomes. A pair's name is its claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpunode.engines.base import Rewrite
from gpunode.engines.docker.engine import Docker
from gpunode.model.spec import RuntimeSpec
from tests.engines.hosts import PATHS, engine_facts, host_with

DIRECTORY = Path(__file__).parent / "docker"
PATH = PATHS["docker"]
DEFAULT, NO_DEFAULT, CDI = RuntimeSpec(), RuntimeSpec(default=False), RuntimeSpec(cdi=True)
BEFORE, AFTER = ".before.json", ".after.json"
# What a pair's name begins with says what was asked for.
WANTED = {"no-default": NO_DEFAULT, "cdi": CDI}
# Pairs whose outcome hangs on the daemon's version or on what is on disk; all others are the same everywhere.
ONLY = {
    "cdi-is-default-on-28": "28.5.2",
    "cdi-is-null-on-28": "28.5.2",
    "cdi-was-off": "28.5.2",
    "cdi-on-26": "26.1.5",
    "cdi-joins-features": "26.1.5",
    "cdi-features-null": "26.1.5",
    "cdi-in-an-empty-file": "26.1.5",
    "cdi-one-line": "26.1.5",
    "cdi-was-on": "26.1.5",
}
# Pairs whose "before" an older docker does not live through, or does not understand: gpunode refuses it there.
LEAST = {"default-runtime-is-a-shim": (23, 0), "runtime-type-form": (23, 0)}
MISSING = {"stale-path": ("/run/nvidia/toolkit/nvidia-container-runtime",)}


@dataclass(frozen=True)
class Case:
    name: str
    before: str | None  # None: there is no file
    after: str
    want: RuntimeSpec
    version: str | None  # the only docker it is about; None: any
    least: tuple[int, int] = (0, 0)  # dockers older than this one are refused
    observed: Mapping[str, object] = field(default_factory=dict)


def cases() -> tuple[Case, ...]:
    """Every pair; one with no "before" is about a host without the file."""
    return tuple(_case(path.name.removesuffix(AFTER)) for path in sorted(DIRECTORY.glob(f"*{AFTER}")))


def rewritten(
    text: str | None, version: str | None = "26.1.5", want: RuntimeSpec = DEFAULT, **observed: object
) -> Rewrite:
    """What Docker's rewriter makes of `text` on a host with that docker."""
    facts = engine_facts("docker", version, **observed)
    return Docker().rewrite(host_with(facts, files={PATH: text}), facts, want)


def _case(name: str) -> Case:
    before = DIRECTORY / f"{name}{BEFORE}"
    want = next((w for prefix, w in WANTED.items() if name.startswith(prefix)), DEFAULT)
    text = _text(before) if before.exists() else None
    observed = {"missing_binaries": MISSING[name]} if name in MISSING else {}
    return Case(
        name, text, _text(DIRECTORY / f"{name}{AFTER}"), want, ONLY.get(name), LEAST.get(name, (0, 0)), observed
    )


def _text(path: Path) -> str:
    """With every byte: read_text would turn CRLF into LF."""
    return path.read_bytes().decode("utf-8", "surrogateescape")
