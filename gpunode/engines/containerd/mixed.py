"""Files in several schemas: what a daemon ignores is said or converted, what it takes by halves is refused."""

from __future__ import annotations

from gpunode.advice import named
from gpunode.engines.containerd import live
from gpunode.engines.containerd.cri_section import V1, V2, V3, section
from gpunode.engines.containerd.imports import Files
from gpunode.engines.containerd.schema import (
    as_version_2,
    merges,
    migrates_each,
    misfit,
    refuse_wrong_types,
    version_of,
)
from gpunode.errors import ConfigFileError


def in_read_schema(files: Files) -> Files:
    """The files with a version 1 root as version 2, where the daemon ignores such files: so they are to be written."""
    version = version_of(files.root, files.plain(files.root), files.daemon)
    if version > 1 or not merges(files.daemon) or migrates_each(files.daemon):
        return files
    return files.having(files.root, as_version_2(files.root, files.text(files.root), files.daemon))


def about(before: Files, files: Files) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what was done, what is to be known) about settings in another schema than the one that the daemon reads."""
    root = files.root
    notes = tuple(_about_dead(path, name) for path in files.order() for name in live.dead(files, path))
    if before.text(root) != files.text(root):
        note = (
            "containerd 2.0 to 2.2 ignore every plugin setting of a version 1 file silently, so those of "
            f"{root} come into force with this restart"
        )
        return ("version 1 → 2",), (note, *notes)
    if not merges(files.daemon) and live.version(files, root) == 1:
        note = f"{root} is in version 1, which containerd 1.x reads; 2.0 to 2.2 ignore its settings, nvidia included"
        notes = (note, *notes)
    return (), notes


def _about_dead(path: str, name: str) -> str:
    later = "; 2.x reads it, so take it out before an upgrade" if name == V3 else ""
    return f"plugins.{name!r} in {path} is of another schema: containerd ignores what it sets for runtimes{later}"


def refuse(files: Files) -> None:
    """Raises ConfigFileError for a wrong type or a missing import, UnsupportedHost where two schemas would mix."""
    root, each = files.root, migrates_each(files.daemon)
    version = live.version(files, root)
    for path in files.order():
        plain = files.plain(path)
        refuse_wrong_types(path, plain)
        other = live.version(files, path)
        cri = [plugin for plugin in (V1, V2, V3) if section(plain, "plugins", plugin)]
        odd = other > version if each else bool(cri) and (other != version or (version > 1 and V1 in cri))
        if path != root and odd:
            raise misfit(
                files.daemon,
                f"{path} is in version {1 if V1 in cri else other} and its importer {root} in version {version}",
                "containerd 2.3.0 to 2.3.4 do not start on it"
                if each
                else "containerd then ignores the CRI settings of one of the two silently, or does not start",
                "write both in the same version, or remove the import",
            )
    _refuse_both(files)
    _refuse_missing(files)


def _refuse_both(files: Files) -> None:
    """Of a version 2 file 2.x takes what version 3's table does not set: half of a runtime is in force then.

    Which of the two a daemon of unknown version reads is not known.
    """
    old = [path for path in files.order() if live.version(files, path) < 3]
    newer = [path for path in old if live.sets(files.plain(path), V3)]
    older = [path for path in old if live.sets(files.plain(path), V2)]
    if newer and (files.daemon is None or (older and merges(files.daemon))):
        raise misfit(
            files.daemon,
            f"{newer[0]} is in version {live.version(files, newer[0])} and sets runtimes under plugins.{V3!r}"
            + (f", {older[0]} under plugins.{V2!r}" if older else ""),
            "containerd 1.x reads the name of version 2 alone; 2.x takes a part of each where both are there",
            f"write {named(newer[0])} under one of the two names (containerd config migrate prints version 3)",
        )


def _refuse_missing(files: Files) -> None:
    """Of the imports: what gpunode adds would stand behind it, and not be read."""
    for path in files.order():
        for pattern in files.missing(path):
            raise ConfigFileError(
                f"{path} imports {pattern}, which is not there",
                evidence="containerd 1.x does not start on that; 2.x silently reads none of the imports behind it",
                remedy=f"take {named(pattern)} out of the imports, or put the file there",
            )
