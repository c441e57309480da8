"""One engine's config file as if it were a host: the facts its rewriter wants, from this machine's disk alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpunode.catalog import cdi_versions
from gpunode.engines.base import Alone, Edit, Engine, Rewrite
from gpunode.engines.handler import LOOKED_FOR, refuse_own
from gpunode.engines.registry import ENGINES, engine
from gpunode.errors import ConfigFileError, UsageError
from gpunode.model.facts import HostFacts, KernelFacts, OsFacts, RuntimeFacts, ToolkitFacts
from gpunode.model.files import FileFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.offline import image, local_file, words
from gpunode.offline.local_file import Before
from gpunode.values import dataclass

LEAVE_OUT = "leave it out"
PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")  # PATH of systemd's units


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
    daemon: str  # the version that was named; "" where none was
    notes: tuple[str, ...] = ()  # what this disk has to say, whether or not anything changes


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
    rule = words.without_version(runtime.name, alone.daemon if where.daemon is None else None)
    with words.reworded(rule):
        rewrite = _rewritten(runtime, alone, disk)
    _refuse_elsewhere(runtime, main, where, alone.want, rewrite.edits)
    # Against the disk's own text: a schema that was put into an empty file is part of the change.
    edits = tuple(Edit(disk.real(e.path), disk.read(e.path).text, e.after, e.mode) for e in rewrite.edits)
    before = {disk.real(e.path): disk.before(e.path) for e in rewrite.edits}
    said = rewrite._replace(edits=edits, notes=tuple(map(rule, rewrite.notes)))
    notes = (*_notes(disk, alone.want, rewrite), *_old_cdi(_facts(runtime, alone), alone.want, where))
    return OneFile(said, before, where.daemon or "", notes)


def _rewritten(runtime: Engine, alone: Alone, disk: Disk) -> Rewrite:
    """A program that the files name and the disk does not have gives way to the usual one, if that is there."""
    facts, want = _facts(runtime, alone), alone.want
    host = _host(facts, {**disk.files, alone.main.path: alone.main}, disk)
    rewrite = runtime.rewrite(host, facts, want)
    missing = tuple(_missing(disk, want, rewrite))
    if missing and want.path is None and disk.has_program(want.program):
        rewrite = runtime.rewrite(host, replace(facts, missing_binaries=missing), want)
    return rewrite


def _missing(disk: Disk, want: RuntimeSpec, rewrite: Rewrite) -> Iterator[str]:
    """Programs that the files name once they are written, and that are not on the disk."""
    named = (want.program,) if any(want.program in edit.after for edit in rewrite.edits) else ()
    yield from (path for path in rewrite.binaries or named if not disk.has_program(path))


def _notes(disk: Disk, want: RuntimeSpec, rewrite: Rewrite) -> Iterator[str]:
    for edit in rewrite.edits:
        if edit.changed and disk.before(edit.path).names > 1:
            names = disk.before(edit.path).names
            path = disk.real(edit.path)
            yield f"{path} is one of {names} names (hard links) of its file: the others keep the old text"
    here = f"below {disk.root}" if disk.root else "on this machine"
    fails = "no container starts" if want.default else f"no container of {want.handler} starts"
    for path in _missing(disk, want, rewrite):
        yield (
            f"{path} is not {here}: {fails} until it is. It comes with nvidia-container-toolkit; --path names another"
        )


def _old_cdi(engine: RuntimeFacts, want: RuntimeSpec, where: Where) -> Iterator[str]:
    if where.daemon and want.cdi and cdi_versions.reads_old_only(engine):
        yield (
            f"{engine.label} {where.daemon} reads CDI specifications before 0.7 only, and toolkit 1.19 and later write "
            f"0.7 unless {cdi_versions.VARIABLE} has {cdi_versions.FLAG} (nvidia-cdi-refresh.env)"
        )


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
            facts, self._before[path] = local_file.read(self.real(path), self.root)
            self.files[path] = replace(facts, path=path)
        return self.files[path]

    @contextlib.contextmanager
    def own_words(self) -> Iterator[None]:
        """Errors name a file by its path outside the root."""
        with words.reworded(lambda text: words.below(self.root, self.files)(text)):  # the files read by then
            yield

    def has_program(self, path: str) -> bool:
        """Whether it can be run; a bare name is looked for where daemons look."""
        places = (path,) if "/" in path else tuple(f"{directory}/{path}" for directory in PROGRAMS)
        return any(image.is_program(self.root, self.real(place)) for place in places)

    def before(self, path: str) -> Before:
        self.read(path)
        return self._before[path]

    def named(self, pattern: str) -> list[str]:
        """The files that a glob names, read, in the order of their names."""
        found = image.matching(self.root, pattern)
        for path in found:
            self.read(path)
        return found


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


def _host(facts: RuntimeFacts, files: Mapping[str, FileFacts], disk: Disk) -> HostFacts:
    """A host of which nothing is known but these files, and runc and crun: no kubelet, no daemon that runs."""
    found = (f"{directory}/{name}" for directory in PROGRAMS for name in LOOKED_FOR)
    return HostFacts(
        target="this machine",
        hostname="",
        os=OsFacts("", ""),
        kernel=KernelFacts(""),
        root=os.geteuid() == 0,
        init="none",
        toolkit=ToolkitFacts(low_level=tuple(filter(disk.has_program, found))),
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
