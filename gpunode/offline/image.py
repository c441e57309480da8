"""Paths below an image's directory, walked as a process in that image would walk them: no link leads out of it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

MOST_LINKS = 40  # of one path, as Linux follows them (path_resolution(7))


def resolved(root: str, path: str) -> str:
    """Where `path`, which begins with `root`, leads when every link is followed, an absolute one from `root`.

    `root`: "" is this machine. What is not there is taken by its name. Raises OSError for links in a circle.
    """
    if not root:
        return os.path.realpath(path)
    here: list[str] = []
    waiting = path.removeprefix(root).split("/")[::-1]
    links = 0
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = here[:-1]
        elif (target := _link("/".join((root, *here, name)))) is None:
            here.append(name)
        else:
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            here = [] if target.startswith("/") else here
            waiting += target.split("/")[::-1]
    return "/".join((root, *here))


def is_program(root: str, path: str) -> bool:
    try:
        found = resolved(root, path)
    except OSError:
        return False
    return os.path.isfile(found) and os.access(found, os.X_OK)


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def matching(root: str, pattern: str) -> list[str]:
    """The paths, without `root`, that a glob of Go's names, in their order: its `*` takes names with a leading dot.

    A last part `**` is every file below the directory, in the order of Go's filepath.Walk.
    """
    found = [""]
    for part in pattern.split("/")[1:]:
        found = [f"{path}/{name}" for path in found for name in _names(root, path, part)]
    return found


def _names(root: str, directory: str, part: str) -> list[str]:
    try:
        where = resolved(root, f"{root}{directory}/")
        if part == "**":
            return list(_files_below(where, ""))
        if not re.search(r"[*?\[]", part):
            return [part] if os.path.lexists(f"{where}/{part}") else []
        return sorted(name for name in os.listdir(where) if fnmatchcase(name, part.replace("[^", "[!")))
    except OSError:
        return []


def _files_below(directory: str, above: str) -> Iterator[str]:
    for name in sorted(os.listdir(directory)):
        path = f"{directory}/{name}"
        if os.path.isdir(path) and not os.path.islink(path):
            yield from _files_below(path, f"{above}{name}/")
        else:
            yield f"{above}{name}"
