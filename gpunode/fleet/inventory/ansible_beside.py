"""group_vars and host_vars next to an inventory of Ansible. A file there, for any group, outweighs the inventory.

Ansible reads NAME, NAME.yml, NAME.yaml and NAME.json, and every such file below a directory NAME (in order).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.fleet.inventory.ansible_vars import is_read, is_secret
from gpunode.fleet.inventory.ansible_yaml import holds_vault
from gpunode.fleet.inventory.tree import ALL, Said, Tree
from gpunode.fleet.inventory.yaml_nodes import document
from gpunode.foreign import read_file

MOST_FILES = 2000
MOST_BYTES = 256 * 1024  # of one of them
_ENDINGS = ("", ".yml", ".yaml", ".json")


def read_beside(directory: Path, tree: Tree) -> None:
    """Put what stands there over what the inventory says; faults and notes go to the tree."""
    tree.group(ALL, 0)
    groups = {name: group.beside for name, group in tree.groups.items()}
    for kind, places in (("group_vars", groups), ("host_vars", tree.hosts)):
        for path in _files(directory / kind, set(places), tree):
            _read(path, kind, directory, places, tree)


def _files(directory: Path, names: set[str], tree: Tree) -> Iterator[Path]:
    """The files for these names, in the order in which a later one takes precedence."""
    found: list[Path] = []
    for entry in _entries(directory, tree):
        stem, ending = os.path.splitext(entry.name)
        if entry.is_dir() and entry.name in names:
            found += _below(Path(entry.path))
        elif entry.name in names or (ending in _ENDINGS and stem in names):
            found.append(Path(entry.path))
        if len(found) > MOST_FILES:
            tree.fault(0, f"{directory} has more than {MOST_FILES} files")
            return
    yield from (path for path in found if path.suffix in _ENDINGS or path.name in names)


def _below(directory: Path) -> list[Path]:
    """All files of a group's directory. A link to a whole file system is not walked to its end."""
    found: list[Path] = []
    for top, inner, names in itertools.islice(os.walk(directory), MOST_FILES):
        inner.sort()
        found += [Path(top, name) for name in sorted(names)]
        if len(found) > MOST_FILES:
            break
    return found


def _entries(directory: Path, tree: Tree) -> list[os.DirEntry[str]]:
    if not directory.is_dir():
        return []
    try:
        with os.scandir(directory) as entries:
            return sorted((one for one in entries if not one.name.startswith(".")), key=lambda one: one.name)
    except OSError as error:
        tree.fault(0, f"{directory} cannot be read ({error.strerror})")
        return []


def _read(path: Path, kind: str, top: Path, places: MutableMapping[str, dict[str, Said]], tree: Tree) -> None:
    inside = path.relative_to(top / kind).parts[0]
    name = inside if inside in places else os.path.splitext(inside)[0]
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
        elif is_read(variable) and value.text is not None:
            places[name][variable] = Said(value.text, 0)
