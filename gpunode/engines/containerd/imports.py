"""The files that make up one containerd's configuration, in the order this daemon's version reads them."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gpunode.catalog.versions import first_with
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.editing.unread import refuse_unread
from gpunode.engines.containerd.schema import merges
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.versions import at_least


class Files(NamedTuple):
    """What is on the host: the root file, and every file that it may import."""

    root: str
    daemon: str | None  # containerd's version
    texts: Mapping[str, str]  # path -> text; an absent file is not in it
    added: tuple[str, ...] = ()  # patterns that the root should import in addition to those its text names

    def text(self, path: str) -> str:
        return self.texts.get(path, "")

    def plain(self, path: str) -> Plain:
        """The values in it, shared between callers: not to be changed."""
        return _plain(path, self.text(path))

    def having(self, path: str, text: str) -> Files:
        """The same files after one is written."""
        return self._replace(texts={**self.texts, path: text})

    def importing(self, path: str) -> Files:
        """The same files where the root imports `path`, which may not be there yet."""
        there = self.having(path, self.text(path))
        return there if path in there.order() else there._replace(added=(*self.added, path))

    def order(self) -> tuple[str, ...]:
        """The files this daemon reads: the root, then by level what each imports; the last one takes precedence."""
        found: list[str] = []
        waiting = [self.root]
        while waiting:
            path = waiting.pop(0)
            if path not in found:
                found.append(path)
                named = (*patterns(self.plain(path)), *(self.added if path == self.root else ()))
                waiting += [p for pattern in named for p in self._named(pattern, path)]
        return tuple(found)

    def _named(self, pattern: str, by: str) -> list[str]:
        where = absolute(pattern, by, self.daemon)
        if "*" not in where:
            return [where] if where in self.texts else []
        return sorted(path for path in self.texts if covers(where, path))

    def missing(self, path: str) -> tuple[str, ...]:
        """Imports of the file that name one file, which is not there."""
        named = patterns(self.plain(path))
        return tuple(name for name in named if "*" not in name and not self._named(name, path))

    def overlooked(self) -> tuple[str, ...]:
        """Patterns that mean files next to the one they are in, and that containerd 1.6 looks for in / instead."""
        if at_least(self.daemon, first_with("containerd", "relative-globs")) or self.daemon is None:
            return ()
        return tuple(
            pattern
            for path in self.order()
            for pattern in patterns(self.plain(path))
            if "*" in pattern and not pattern.startswith("/")
        )


@lru_cache(maxsize=32)
def _plain(path: str, text: str) -> Plain:
    return toml_text.read(path, text)


def gathered(host: HostFacts, engine: RuntimeFacts, *more: str) -> Files:
    """The engine's files as the probe read them, and `more`. Raises ConfigFileError for one that could not be read."""
    root = engine.config_path
    directories = {posixpath.dirname(path) for path in (root, *engine.imports, *more)}
    near = [path for path in host.files if path.endswith(".toml") and posixpath.dirname(path) in directories]
    texts = {}
    for path in dict.fromkeys((root, *engine.imports, *more, *near)):
        file = host.file(path)
        if path == root or path in engine.imports or path in more:
            refuse_unread(file.path, file.unread)
        if file.text is not None:
            texts[path] = file.text
    return Files(root, engine.version, texts)


def patterns(plain: Plain) -> Sequence[str]:
    imports = plain.get("imports", [])
    return [name for name in imports if isinstance(name, str)] if isinstance(imports, list) else []


def absolute(pattern: str, by: str, daemon: str | None) -> str:
    """Where an import in the file `by` leads.

    Relative ones start at that file's directory; only 1.6 looks for relative globs where it was started, which is / for
    a systemd unit.
    """
    if pattern.startswith("/"):
        return posixpath.normpath(pattern)
    old = daemon is not None and not at_least(daemon, first_with("containerd", "relative-globs"))
    return posixpath.normpath(posixpath.join("/" if old and "*" in pattern else posixpath.dirname(by), pattern))


def covers(pattern: str, path: str) -> bool:
    """Whether a glob names the path; no star of it reaches over a slash."""
    wanted, have = pattern.split("/"), path.split("/")
    return len(wanted) == len(have) and all(map(fnmatch.fnmatchcase, have, wanted))


def merged(files: Files) -> Plain:
    """All files in one, as this daemon reads them: 1.x takes each plugin's table whole from the last that has it."""
    whole: Plain = {}
    for path in files.order():
        whole = deep(whole, files.plain(path), 99 if merges(files.daemon) else 2)
    return whole


def deep(to: Plain, new: Plain, levels: int) -> Plain:
    """Both tables in one, `new` taking precedence, merged down to `levels`."""
    both = {
        key: deep(to[key], value, levels - 1)
        for key, value in new.items()
        if levels > 1 and isinstance(value, dict) and isinstance(to.get(key), dict)
    }
    return {**to, **new, **both}
