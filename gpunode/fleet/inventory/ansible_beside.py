"""group_vars and host_vars next to an inventory of Ansible. A file there, for any group, outweighs the inventory.

Of NAME, NAME.yml, NAME.yaml and NAME.json Ansible reads the first that is there, be it a file or a directory.
Source: find_vars_files and _get_dir_vars_files of ansible-core 2.19 (lib/ansible/parsing/dataloader.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import replace
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.fleet.inventory.ansible_vars import is_read, is_secret
from gpunode.fleet.inventory.ansible_yaml import holds_vault, said_by
from gpunode.fleet.inventory.tree import ALL, UNGROUPED, Said, Tree
from gpunode.fleet.inventory.yaml_nodes import document
from gpunode.foreign import read_file

MOST_FILES = 2000
MOST_BYTES = 256 * 1024  # of one of them
_ENDINGS = ("", ".yml", ".yaml", ".json")
_GROUPS, _HOSTS = "group_vars", "host_vars"


def has_beside(directory: Path) -> bool:
    return any(os.path.isdir(directory / kind) for kind in (_GROUPS, _HOSTS))


def read_beside(directory: Path, tree: Tree) -> None:
    """Put what stands there over what the inventory says; faults and notes go to the tree."""
    for always in (ALL, UNGROUPED):
        tree.group(always, 0)
    groups = {name: group.beside for name, group in tree.groups.items()}
    for kind, places in ((_GROUPS, groups), (_HOSTS, tree.hosts)):
        for name, path in _files(directory / kind, places, tree):
            _read(path, name, places, tree)


def _files(directory: Path, names: Iterable[str], tree: Tree) -> Iterator[tuple[str, Path]]:
    """Names with their files, those of one name in the order in which a later one takes precedence."""
    there = frozenset(_entries(directory, tree)) if directory.is_dir() else frozenset[str]()
    found: list[tuple[str, Path]] = []
    for name in sorted(names):
        bare = name.strip("[]")  # Ansible calls a host of IPv6 by its address alone
        spelled = (directory / f"{bare}{ending}" for ending in _ENDINGS if f"{bare}{ending}" in there)
        first = next((path for path in spelled if os.path.exists(path)), None)
        walked = _walk(first, tree) if first else []
        found += [(name, path) for path in walked if not os.path.isdir(path)]
        if max(len(walked), len(found)) > MOST_FILES:
            tree.fault(0, f"{directory} has more than {MOST_FILES} files")
            return
    yield from found


def _walk(first: Path, tree: Tree) -> list[Path]:
    """A file; or a directory and what is in it, files and directories in one order, links as what they lead to.

    More than MOST_FILES where it has more: a link may lead to a whole file system, or in a circle.
    """
    walked, left = list[Path](), [first]
    while left and len(walked) + len(left) <= MOST_FILES:
        path = left.pop()
        walked.append(path)
        if os.path.isdir(path):
            left += [path / name for name in sorted(_entries(path, tree), reverse=True) if _counts(path / name)]
    return walked + left


def _counts(path: Path) -> bool:
    """Whether Ansible looks at it in a directory of a name: not at hidden files and backups, which editors leave."""
    if path.name.startswith(".") or path.name.endswith("~"):
        return False
    ending = os.path.splitext(path.name)[1]
    return not ending if os.path.isdir(path) else os.path.isfile(path) and ending in _ENDINGS


def _entries(directory: Path, tree: Tree) -> list[str]:
    """The names in it; a directory in which nothing may be looked up is a fault, as one that cannot be listed is."""
    try:
        return os.listdir(os.path.join(directory, os.curdir))
    except OSError as error:
        tree.fault(0, f"{directory} cannot be read ({error.strerror})")
        return []


def _read(path: Path, name: str, places: MutableMapping[str, dict[str, Said]], tree: Tree) -> None:
    try:
        raw = read_file(path, MOST_BYTES)
        if raw.startswith(b"$ANSIBLE_VAULT"):
            tree.notes[f"{path} is encrypted by ansible-vault, and is not read"] = None
            return
        if len(raw) > MOST_BYTES:
            raise UsageError(f"{path} is over {MOST_BYTES >> 10} KiB")
        faults: list[str] = []
        root = document(raw.decode("utf-8"), str(path), faults)
    except (OSError, UnicodeDecodeError) as error:
        tree.fault(0, f"{path} cannot be read ({getattr(error, 'strerror', None) or 'it is not UTF-8'})")
        return
    except UsageError as error:
        tree.fault(0, f"{error.problem} ({error.evidence})")
        return
    tree.faults += [f"{path}: {fault}" for fault in faults]
    for variable, value in (root.pairs or {}).items():
        if is_secret(variable):
            tree.notes[f"{variable} in {path} is not read: --ask-become-pass, or a key, is for that"] = None
        elif is_read(variable) and holds_vault(value):
            tree.fault(0, f"{path}: {variable} is encrypted by ansible-vault, and says how {name} is reached")
        elif is_read(variable) and (value.text is not None or value.empty):
            places[name][variable] = replace(said_by(value), line=0)
