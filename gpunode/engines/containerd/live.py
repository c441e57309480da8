"""Which tables of containerd's files are in force: a daemon reads one schema of them and passes over the others.

As seen with containerd 1.6, 1.7 and 2.1: 1.x reads the one table of the file's own version. 2.0 to 2.2 merge the files
as they are and then take from version 2 what version 3's own table does not set, whatever version is written in the
files; of a version 1 file they take version 3's table alone. 2.3 migrates each file before it merges (by its sources).
"""

from __future__ import annotations

from functools import reduce

from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.engines.containerd.cri_section import V1, V2, V3, normal, section
from gpunode.engines.containerd.imports import Files, deep, merged
from gpunode.engines.containerd.schema import merges, migrates_each, new_version
from gpunode.model.facts import RuntimeFacts

KEYS = ("default_runtime_name", "runtimes")


def version(files: Files, path: str) -> int:
    """The schema of a file; one that names none has the root's."""
    root = files.plain(files.root)
    of_root = _stated(root, 1) if root else new_version(files.daemon)
    return of_root if path == files.root else _stated(files.plain(path), of_root)


def _stated(plain: Plain, otherwise: int) -> int:
    stated = plain.get("version")
    return max(stated, 1) if type(stated) is int else otherwise


def tables(files: Files, path: str) -> tuple[str, ...]:
    """The names below [plugins] from which the daemon takes runtimes of this file; where two set a key, the last."""
    schema = version(files, path)
    if schema >= 3:
        return (V3,)
    if not merges(files.daemon):
        return (V1,) if schema == 1 else (V2,)
    if schema == 1:
        return (V1, V3) if migrates_each(files.daemon) else (V3,)
    return (V2, V3)


def plugin(files: Files, path: str) -> str:
    """The name below [plugins] under which a runtime in this file is in force."""
    read = tables(files, path)
    others = () if migrates_each(files.daemon) else files.order()
    newer = V3 in read and any(sets(files.plain(one), V3) for one in (path, *others))
    return V3 if newer else read[0]


def engine(files: Files, path: str) -> Plain:
    """The section of the file that holds runtimes in force, or would hold one that is added."""
    return section(files.plain(path), "plugins", plugin(files, path), "containerd")


def sets(plain: Plain, name: str) -> tuple[str, ...]:
    """What the table `name` below [plugins] sets of that which gpunode sets, too."""
    table = section(plain, "plugins", name)
    return (
        *(("enable_cdi",) if "enable_cdi" in table else ()),
        *(k for k in KEYS if k in section(table, "containerd")),
    )


def dead(files: Files, path: str) -> tuple[str, ...]:
    """Names below [plugins] of the file that set runtimes, and that the daemon passes over."""
    return tuple(one for one in (V1, V2, V3) if one not in tables(files, path) and sets(files.plain(path), one))


def effective(facts: RuntimeFacts, files: Files) -> Plain:
    """What the daemon makes of all its files, by its own dump where it answered. Raises ConfigFileError."""
    dump = toml_text.load("containerd config dump", facts.merged_config) if facts.merged_config else {}
    return with_files(dump, files)


def with_files(dump: Plain, files: Files) -> Plain:
    """What the daemon makes of all files, by its own dump ({} when it was not read) and by the files; in version 3.

    The files take precedence on 2.x: its dump leaves out what is in a version 1 file.
    """
    result = section(normal(dump), "plugins", V3)
    if result and not merges(files.daemon):
        return normal(dump)
    for table in _by_files(files):
        result = deep(result, table, levels=99)
    return {"plugins": {V3: result}}


def _by_files(files: Files) -> list[Plain]:
    if not merges(files.daemon):
        # One table counts, whole: that of the last file that has it.
        return [section(merged(files), "plugins", plugin(files, files.root))]
    return [_in_force(files, path) for path in files.order()]


def _in_force(files: Files, path: str) -> Plain:
    plain = files.plain(path)
    found = (section(plain, "plugins", name) for name in tables(files, path))
    empty: Plain = {}
    return reduce(lambda one, other: deep(one, other, levels=99), found, empty)
