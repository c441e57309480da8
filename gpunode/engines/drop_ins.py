"""Directories of drop-ins that an engine reads in the order of their names; later values take precedence."""

from __future__ import annotations

from collections.abc import Callable
from posixpath import basename, dirname

from gpunode.advice import named
from gpunode.editing import toml_text
from gpunode.editing.plain import Plain
from gpunode.editing.unread import refuse_unread
from gpunode.errors import ConfigFileError
from gpunode.model.facts import HostFacts
from gpunode.model.files import FileFacts, is_candidate


def files_in(host: HostFacts, directory: str, *endings: str, deep: bool = False) -> tuple[FileFacts, ...]:
    """The directory's files in the order in which they are read. Raises ConfigFileError for one that cannot be read.

    `endings`: only names that end so are read; none: all are. `deep`: those of its directories too, each in its
    directory's place among the names.
    """
    below = (file for path, file in host.files.items() if is_in(directory, path, deep=deep))
    here = (file for file in below if file.exists and not is_candidate(file.path))
    found = tuple(sorted((f for f in here if not endings or f.path.endswith(endings)), key=lambda f: f.path.split("/")))
    for file in found:
        refuse_unread(file.path, file.unread)
    return found


def is_in(directory: str, path: str, *, deep: bool) -> bool:
    return path.startswith(f"{directory}/") if deep else dirname(path) == directory


def load(file: FileFacts, tool: str) -> Plain:
    """The file's values. Raises ConfigFileError with line and column; `tool` is what reads the file on the host."""
    try:
        return toml_text.load(file.path, file.text or "")
    except ConfigFileError as fault:
        raise ConfigFileError(
            fault.problem,
            evidence=f"{tool} does not take it either; no file was touched",
            remedy=f"correct {named(file.path)} at that place, or move it away, and run gpunode again",
        ) from None


def path_to_write(found: tuple[FileFacts, ...], preferred: str, own: Callable[[FileFacts], bool]) -> str:
    """The path of the drop-in to write: `preferred`, unless a file there is read after it.

    Then that file itself where it is its `own` (it has the handler already), else a new name after it.
    """
    directory, name = dirname(preferred), basename(preferred)
    last = found[-1].path.removeprefix(f"{directory}/").partition("/")[0] if found else ""
    if last <= name:
        return preferred
    if own(found[-1]):
        return found[-1].path
    suffix = name.rpartition("-")[2]
    if last < f"zz-{suffix}":
        return f"{directory}/zz-{suffix}"
    # "_" sorts after the dot that follows a stem.
    return f"{directory}/{last.rpartition('.')[0] or last}_{suffix}"
