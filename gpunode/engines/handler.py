"""A handler's name, its program, and what that starts in its turn: one rule for every engine.

nvidia-container-runtime takes the first of `runtimes` in its config.toml that is there, a bare name in PATH. With
another one than made a container, or with none ("no runtime binary found from candidate list"), the engine cannot ask
for its state, stop it or exec into it; CRI-O takes its containers for stopped when it starts. nvidia-ctk-installer puts
the path of the engine's own runtime first for the same reason (NVIDIA/nvidia-container-toolkit#723).
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from posixpath import basename, dirname
from typing import NamedTuple

from gpunode.engines import toolkit_config
from gpunode.engines.base import Engine
from gpunode.errors import UsageError
from gpunode.model.facts import HostFacts
from gpunode.model.spec import TOOLKIT_CONFIG, RuntimeSpec
from gpunode.regex import regex

# What NVIDIA's runtime itself starts; docker's runtimeType of containerd's shim for runc stands for runc.
_LOW_LEVEL = ("runc", "crun", "io.containerd.runc.*")
# The toolkit's own list where its file has none (since 1.15.0; before it docker-runc, then runc).
CANDIDATES = ("runc", "crun")
# Where it looks for a bare name besides its PATH.
PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
LOOKED_FOR = ("runc", "crun", "docker-runc")  # by the probe (ToolkitFacts.low_level)
# `nvidia-ctk config --set` makes ["[\"crun\"]"] of a list that is written as one: no program has such a name.
_NAME = regex(r"[\w.+/-]+")


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


class LowLevel(NamedTuple):
    """A runtime of an engine: its handler's name, and its program; a bare name where the engine looks in PATH."""

    name: str
    program: str


def candidates(host: HostFacts) -> tuple[str, ...]:
    """What nvidia-container-runtime looks for, in order."""
    found = toolkit_config.texts(host.file(TOOLKIT_CONFIG), "nvidia-container-runtime.runtimes")
    return CANDIDATES if found is None else found


def at_hand(host: HostFacts) -> tuple[str, ...]:
    """The candidates that are not known to be absent."""
    missing = {path for engine in host.runtimes for path in engine.missing_binaries}
    in_path = None if host.toolkit.low_level is None else set(map(basename, host.toolkit.low_level))
    return tuple(
        one
        for one in candidates(host)
        if _NAME.fullmatch(one)
        and one not in missing
        and not (in_path is not None and one in LOOKED_FOR and one not in in_path)
    )


def starts(host: HostFacts, wanted: LowLevel) -> bool:
    """Whether nvidia-container-runtime starts what `wanted` is: a path of the same name is of the same kind."""
    first = next(iter(at_hand(host)), None)
    if first is None or basename(first) != basename(wanted.program):
        return False
    looked = "/" in first or first in map(basename, host.toolkit.low_level or ())
    return looked or dirname(wanted.program) in ("", *PATH)


def is_guessed(host: HostFacts) -> bool:
    """Whether the first candidate is a bare name that nobody looked for: in recordings of an older gpunode."""
    return host.toolkit.low_level is None and "/" not in next(iter(at_hand(host)), "/")


def with_first(host: HostFacts, wanted: LowLevel) -> tuple[str, ...]:
    """`runtimes` with that program first; what can be no program's name goes."""
    return (wanted.program, *(one for one in candidates(host) if one != wanted.program and _NAME.fullmatch(one)))
