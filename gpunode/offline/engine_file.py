"""One engine's config file as if it were a host: the facts its rewriter wants, from this machine's disk alone."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpunode.catalog.runtimes import carrier, carriers
from gpunode.editing import toml_text
from gpunode.engines import podman
from gpunode.engines.base import Edit, Rewrite
from gpunode.engines.containerd.edit import drop_in_path
from gpunode.engines.registry import engine
from gpunode.errors import ConfigFileError, GpunodeError, UsageError
from gpunode.model.facts import FileFacts, HostFacts, KernelFacts, OsFacts, RuntimeFacts
from gpunode.model.spec import RuntimeSpec
from gpunode.offline import local_file
from gpunode.offline.local_file import Before

# The file each engine reads when nobody tells it otherwise, where a person may name another.
PATHS = {
    "docker": "/etc/docker/daemon.json",
    "containerd": "/etc/containerd/config.toml",
    "crio": "/etc/crio/crio.conf",
}
# A daemon that reads each schema of containerd's file, for when nobody says which one it is for. Version 2 is read
# by every daemon from 1.3 on; 1.7 is the one whose wishes (runc written out) harm none of the others.
SUITS = {1: "1.7.0", 2: "1.7.0", 3: "2.1.0", 4: "2.3.0"}


@dataclass(frozen=True)
class Where:
    """Which files are meant."""

    config: str | None = None  # the engine's own where None
    root: str = ""  # an image's folder, below which every path is; "" is this machine itself
    daemon: str | None = None  # version of the daemon (of k3s and its like: theirs); None: whichever reads the file
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
    runtime, main = engine(name), _main(name, where)
    _refuse_schema(name, where)
    file = disk.read(main)
    daemon = where.daemon
    if name == "containerd":
        file = _in_schema(file, where.schema)
        daemon = daemon or _assumed(file)
        if want.drop_in is None and (where.daemon is None or main != PATHS[name]):
            # Every daemon reads its main file in the same way; drop-ins are merged by some versions only.
            want = replace(want, drop_in="none")
    facts = _facts(name, main, daemon, tuple(_read_more(name, main, file, want, disk)))
    rewrite = runtime.rewrite(_host(facts, {**disk.files, main: file}), facts, want)
    _stay_beside(name, main, where, want, rewrite.edits)
    # Against the disk's own text: a schema that was put into an empty file is part of the change.
    edits = tuple(Edit(disk.real(e.path), disk.read(e.path).text, e.after, e.mode) for e in rewrite.edits)
    before = {disk.real(e.path): disk.before(e.path) for e in rewrite.edits}
    return OneFile(replace(rewrite, edits=edits), before, daemon or "")


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
        """Errors name a file as the person who is outside the root finds it."""
        try:
            yield
        except GpunodeError as error:
            names = "|".join(map(re.escape, sorted(self.files, key=len, reverse=True)))
            if self.root and names:
                for part in ("problem", "evidence", "remedy"):
                    rooted = re.sub(rf"(?<![\w/.-])({names})", lambda found: self.real(found[0]), getattr(error, part))
                    setattr(error, part, rooted)
            raise

    def before(self, path: str) -> Before:
        self.read(path)
        return self._before[path]

    def named(self, pattern: str) -> list[str]:
        """The files that a glob names, read, in the order of their names."""
        # Go's glob takes names with a leading dot; Python's does not, and a hidden drop-in is nobody's habit.
        found = sorted(path.removeprefix(self.root) for path in glob.glob(glob.escape(self.root) + pattern))
        for path in found:
            self.read(path)
        return found


def _main(name: str, where: Where) -> str:
    fixed = PATHS.get(name) or (podman.MAIN if name == "podman" else carrier(name).config)
    if where.config is None:
        return fixed
    if name not in PATHS and where.config != fixed:
        raise UsageError(
            f"{name} reads its files in places of its own, {fixed} and others",
            evidence="--config is for docker, containerd and crio",
            remedy="leave it out; --root DIR is for an image that is not running",
        )
    return os.path.abspath(where.config)


def _facts(name: str, main: str, daemon: str | None, imports: tuple[str, ...]) -> RuntimeFacts:
    own = any(row.name == name for row in carriers())
    # CRI-O reads its drop-ins beside the file that is named.
    flags = ("--config-dir", f"{main}.d") if name == "crio" else ()
    version, carried_by = (None, daemon) if own else (daemon, None)
    return RuntimeFacts(name, version, main, f"{name}.service", "", imports=imports, flags=flags, carrier=carried_by)


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


def _read_more(name: str, main: str, file: FileFacts, want: RuntimeSpec, disk: Disk) -> Iterator[str]:
    """Read what lies around the main file; answers what containerd imports, in its order."""
    if name == "containerd":
        folders = {os.path.dirname(path) for path in (main, drop_in_path(main, want))}
        for folder in sorted(folders):
            disk.named(f"{folder}/*.toml")
        yield from _imports(disk, main, file)
    for pattern in _around(name, main):
        disk.named(pattern)


def _around(name: str, main: str) -> tuple[str, ...]:
    if name == "crio":
        return (f"{main}.d/*",)
    if name == "podman":
        return (
            *(podman.VENDOR, podman.MAIN, f"{podman.FOLDER}/*.conf"),
            *(podman.ROOTS, f"{podman.ROOTS_FOLDER}/*.conf"),
        )
    if name in ("docker", "containerd"):
        return ()
    folder, reads = os.path.dirname(main), carrier(name).reads
    return (
        *(f"{reads}/config.yaml", f"{reads}/config.yaml.d/*.yaml", f"{reads}/*.toml"),
        *(f"{folder}/*.tmpl", f"{folder}/*.toml"),
    )


def _refuse_schema(name: str, where: Where) -> None:
    if where.schema is not None and name != "containerd":
        raise UsageError("--config-schema is for containerd", remedy="leave it out")
    if where.schema is not None and where.schema not in SUITS:
        raise UsageError(
            f"--config-schema {where.schema} is not a schema of containerd's file",
            evidence=f"the schemas are {', '.join(map(str, SUITS))}",
            remedy="containerd 1.x reads 2, 2.0 reads 3, 2.3 reads 4; all of them read 2",
        )


def _in_schema(file: FileFacts, schema: int | None) -> FileFacts:
    """The file; a new one begins with the schema that was asked for."""
    if schema is None or file.unread:
        return file
    if not (file.text or "").strip():
        return replace(file, text=f"version = {schema}\n")
    if _schema(file) == schema:
        return file
    raise UsageError(
        f"{file.path} is in schema {_schema(file)}, and --config-schema {schema} is for a new file",
        evidence="its settings stand under other names in another schema",
        remedy="leave --config-schema out; containerd config migrate converts a file to the newest",
    )


def _assumed(file: FileFacts) -> str:
    return SUITS.get(_schema(file), SUITS[4]) if (file.text or "").strip() else SUITS[2]


def _schema(file: FileFacts) -> int:
    version = toml_text.load(file.path, file.text or "").get("version", 1)
    return version if isinstance(version, int) and version > 0 else 1


def _imports(disk: Disk, path: str, file: FileFacts) -> Iterator[str]:
    """The files that a containerd file imports, those that they import, and so on; each once."""
    seen, waiting = {path}, [file]
    while waiting:
        one = waiting.pop(0)
        for name in _imported(disk, one):
            if name not in seen:
                seen.add(name)
                waiting.append(disk.read(name))
                yield name


def _imported(disk: Disk, file: FileFacts) -> Iterator[str]:
    patterns = toml_text.load(file.path, file.text).get("imports", []) if file.text is not None else []
    for pattern in patterns if isinstance(patterns, list) else []:
        if isinstance(pattern, str):
            yield from disk.named(os.path.normpath(os.path.join(os.path.dirname(file.path), pattern)))


def _stay_beside(name: str, main: str, where: Where, want: RuntimeSpec, edits: tuple[Edit, ...]) -> None:
    """A file that was named may import /etc/containerd/conf.d of this machine, when an image's was meant."""
    if where.root or main == PATHS.get(name) or name not in PATHS:
        return
    folder = os.path.dirname(main)
    away = [e.path for e in edits if e.changed and e.path != want.drop_in and not e.path.startswith(f"{folder}/")]
    if away:
        raise ConfigFileError(
            f"{main} imports {away[0]}, which has the last word and is not in {folder}",
            evidence="only files beside the one that is named are changed; nothing was written",
            remedy="--root DIR, where the file belongs to an image; else name that file with --config",
        )
