"""A handler's name and its program: one rule for every engine."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from gpunode.engines.base import Engine
from gpunode.errors import UsageError
from gpunode.model.spec import RuntimeSpec

# What NVIDIA's runtime itself starts; docker's runtimeType of containerd's shim for runc stands for runc.
_LOW_LEVEL = ("runc", "crun", "io.containerd.runc.*")


def is_low_level(program: str) -> bool:
    """It starts a container as it is asked to: without a GPU, unless its engine runs OCI hooks, as CRI-O does."""
    return any(fnmatchcase(program.rpartition("/")[2], pattern) for pattern in _LOW_LEVEL)


def program(want: RuntimeSpec, there: str | None, missing: Collection[str] = (), *, hooks: bool = False) -> str:
    """A path that was named wins; else the one that is there is unchanged, unless no GPU comes of it.

    `there`: what the entry names now, such as the GPU Operator's; None or "" where it names nothing. `missing`: paths
    that the disk does not have (RuntimeFacts.missing_binaries). `hooks`: the engine runs OCI hooks, with which runc
    and crun give a GPU, too.
    """
    keeps = want.path is None and there and there not in missing and (hooks or not is_low_level(there))
    return there if keeps and there else want.program


def about_program(
    want: RuntimeSpec, entry: str, there: str | None, missing: Collection[str] = (), *, hooks: bool = False
) -> tuple[str, ...]:
    """What is to be known of the program that an `entry` named so far; `hooks` as above."""
    if there in missing:
        return (f"{there}, which {entry} named, is not on this host's disk",)
    if there and not hooks and is_low_level(there):
        return (f"{there}, which {entry} named, gives a container no GPU",)
    if want.path is None and there and there.rpartition("/")[2] != there != want.program:
        return (f"{entry} keeps the path it has, {there}",)
    return ()


def refuse_own(engine: Engine, want: RuntimeSpec) -> None:
    """Raises UsageError for a handler that would take the place of a runtime that the engine has by itself."""
    if not any(fnmatchcase(want.handler, name) for name in engine.own_handlers):
        return
    raise UsageError(
        f"{want.handler!r} is a runtime that {engine.name} has by itself, and no name for NVIDIA's",
        evidence=f"{engine.own_handlers_are}; the names {engine.name} has are {', '.join(engine.own_handlers)}",
        remedy="choose another name; nvidia is the usual one",
    )
