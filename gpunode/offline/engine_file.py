"""One engine's config file as if it were a host: the facts its rewriter wants, from this machine's disk alone."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from gpunode.engines.base import Alone, Edit, Engine, Rewrite
from gpunode.engines.handler import refuse_own
from gpunode.engines.registry import ENGINES, engine
from gpunode.errors import ConfigFileError, GpunodeError, UsageError
from gpunode.model.facts import FileFacts, HostFacts, KernelFacts, OsFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.offline import local_file
from gpunode.offline.local_file import Before

LEAVE_OUT = "leave it out"


@dataclass(frozen=True)
class Where:
    """Which files are meant."""

    config: str | None = None  # the engine's own where None
    root: str = ""  # an image's directory, below which every path is; "" is this machine itself
    daemon: str | None = None  # of the daemon or the Kubernetes distribution; None: whichever reads the file
    schema: int | None = None  # of a new containerd file


@dataclass(frozen=True)
class OneFile:
    """A rewrite of files on this machine, and those files as they were read."""

    rewrite: Rewrite
    before: Mapping[str, Before]  # by path, for every file of the rewrite
    daemon: str  # the version it was written for; "" where it makes no difference


def plan_one(name: str, where: Where, want: RuntimeSpec) -> OneFile:
    """What `want` makes of the engine's file. Touches nothing.

    Raises UnsupportedHost for an engine or version gpunode cannot configure, UsageError for options that contradict the
    file, ConfigFileError for a file that cannot be read or edited safely.
    """
    disk = Disk(where.root)
    with disk.own_words():
        return _planned(name, where, want, disk)


def _planned(name: str, where: Where, want: RuntimeSpec, disk: Disk) -> OneFile:
    runtime = engine(name)
    refuse_own(runtime, want)
    main = _main(runtime, where)
    if where.schema is not None and not runtime.schemas:
        raise UsageError(f"--config-schema is for {listed(e for e in ENGINES.values() if e.schemas)}", remedy=LEAVE_OUT)
    alone = runtime.alone(disk, Alone(disk.read(main), want, where.daemon), where.schema)
    facts = _facts(runtime, alone)
    rewrite = runtime.rewrite(_host(facts, {**disk.files, main: alone.main}), facts, alone.want)
    _refuse_elsewhere(runtime, main, where, alone.want, rewrite.edits)
    # Against the disk's own text: a schema that was put into an empty file is part of the change.
    edits = tuple(Edit(disk.real(e.path), disk.read(e.path).text, e.after, e.mode) for e in rewrite.edits)
    before = {disk.real(e.path): disk.before(e.path) for e in rewrite.edits}
    return OneFile(replace(rewrite, edits=edits), before, alone.daemon or "")


def listed(engines: Iterable[Engine]) -> str:
    """ "docker, containerd and crio": whose option it is."""
    *others, last = [one.name for one in engines]
    return f"{', '.join(others)} and {last}" if others else last


class Disk:
    """Files read so far, each once, by their path below the root."""

    def __init__(self, root: str = "") -> None:
        self.root = os.path.realpath(root) if root else ""
        self.files: dict[str, FileFacts] = {}
        self._before: dict[str, Before] = {}

    def real(self, path: str) -> str:
        return self.root + path

    def read(self, path: str) -> FileFacts:
        if path not in self.files:
            facts, self._before[path] = local_file.read(self.real(path))
            outside = self.root and not self._before[path].resolved.startswith(f"{self.root}/")
            why = f"it is a symbolic link out of {self.root}" if outside else facts.unread
            self.files[path] = replace(facts, path=path, unread=why)
        return self.files[path]

    @contextlib.contextmanager
    def own_words(self) -> Iterator[None]:
        """Errors name a file by its path outside the root."""
        try:
            yield
        except GpunodeError as error:
            names = "|".join(map(re.escape, sorted(self.files, key=len, reverse=True)))
            if self.root and names:
                pattern = re.compile(rf"(?<![\w/.-])({names})")
                rooted = partial(pattern.sub, lambda found: self.real(found[0]))
                error.problem, error.evidence = rooted(error.problem), rooted(error.evidence)
                error.remedy = error.remedy.reworded(rooted)
            raise

    def before(self, path: str) -> Before:
        self.read(path)
        return self._before[path]

    def named(self, pattern: str) -> list[str]:
        """The files that a glob names, read, in the order of their names."""
        found = sorted(path.removeprefix(self.root) for path in _glob(self.root or "/", pattern))
        for path in found:
            self.read(path)
        return found


def _glob(root: str, pattern: str) -> list[str]:
    """What is below `root` by that name. As in Go's filepath.Glob a star takes a leading dot, too."""
    found = [root.rstrip("/")]
    for part in filter(None, pattern.split("/")):
        if not any(mark in part for mark in "*?["):
            found = [path for at in found if os.path.lexists(path := f"{at}/{part}")]
            continue
        found = [f"{at}/{name}" for at in found for name in _names(at or "/") if fnmatch.fnmatchcase(name, part)]
    return found


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []  # no directory, or none that may be listed: nothing of that name, as for the engine itself


def _main(runtime: Engine, where: Where) -> str:
    if where.config is None:
        return runtime.config
    if not runtime.movable and where.config != runtime.config:
        raise UsageError(
            f"{runtime.name} reads its files in places of its own, {runtime.config} and others",
            evidence=f"--config is for {listed(e for e in ENGINES.values() if e.movable)}",
            remedy="leave it out; --root DIR is for an image that is not running",
        )
    return os.path.abspath(where.config)


def _facts(runtime: Engine, alone: Alone) -> RuntimeFacts:
    version, distribution = (None, alone.daemon) if runtime.embedded else (alone.daemon, None)
    return RuntimeFacts(
        runtime.name,
        version,
        alone.main.path,
        f"{runtime.name}.service",
        "",
        imports=alone.imports,
        flags=alone.flags,
        embedded_in=distribution,
    )


def _host(facts: RuntimeFacts, files: Mapping[str, FileFacts]) -> HostFacts:
    """A host of which nothing is known but these files: no kubelet, no daemon that runs."""
    return HostFacts(
        target="this machine",
        hostname="",
        os=OsFacts("", ""),
        kernel=KernelFacts(""),
        root=os.geteuid() == 0,
        init="none",
        runtimes=(facts,),
        files=files,
    )


def _refuse_elsewhere(runtime: Engine, main: str, where: Where, want: RuntimeSpec, edits: tuple[Edit, ...]) -> None:
    """A file that was named may import /etc/containerd/conf.d of this machine, when an image's was meant."""
    if where.root or main == runtime.config or not runtime.movable:
        return
    directory = os.path.dirname(main)
    away = [e.path for e in edits if e.changed and e.path != want.drop_in and not e.path.startswith(f"{directory}/")]
    if away:
        raise ConfigFileError(
            f"{main} imports {away[0]}, which takes precedence and is not in {directory}",
            evidence="only files next to the one that is named are changed; nothing was written",
            remedy="--root DIR, where the file belongs to an image; else name that file with --config",
        )
