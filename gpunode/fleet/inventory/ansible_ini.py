"""Ansible's INI inventories: [group], [group:vars], [group:children], and hosts with their variables."""

from __future__ import annotations

import ast
import re
import shlex
import warnings

from gpunode.fleet.inventory.ansible_vars import keep
from gpunode.fleet.inventory.tree import UNGROUPED, Said, Tree, lines_of
from gpunode.regex import regex
from gpunode.values import dataclass

_SECTION = regex(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:[#;].*)?")
_KINDS = ("hosts", "children", "vars")
# A value in [group:vars] is the rest of its line; of a number or a quoted text Ansible drops a comment behind it.
_VALUE = regex(r"""(?:(?P<number>\d+)|(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))\s*(?:#.*)?""")


@dataclass
class _Place:
    group: str = UNGROUPED
    kind: str = "hosts"


def read_ini(text: str, tree: Tree) -> None:
    """Fill `tree`; what is wrong goes to its faults."""
    tree.dialect = "ansible"
    place, of_vars = _Place(), dict[str, int]()
    for line, words in lines_of(text):
        if not words or words[0] in "#;":
            continue
        if section := _SECTION.fullmatch(words):
            place = _Place(section[1], section[2] or "hosts")
            if place.kind not in _KINDS:
                tree.fault(line, f"[{section[1]}:{place.kind}] is none of hosts, children and vars")
            if place.kind == "vars":
                of_vars.setdefault(place.group, line)
            tree.group(place.group, line)
        elif words.startswith("[") and words.endswith("]"):
            tree.fault(line, f"{words[:80]!r} is no heading of a group")
        else:
            _read(words, place, tree, line)
    _refuse_undeclared(tree, text, of_vars)


def _refuse_undeclared(tree: Tree, text: str, of_vars: dict[str, int]) -> None:
    """Variables of a group that nothing declares are a spelling mistake: its hosts would not have them."""
    declared = {found[1] for _, line in lines_of(text) if (found := _SECTION.fullmatch(line)) and found[2] != "vars"}
    declared |= {"all", UNGROUPED, *(child for group in tree.groups.values() for child in group.children)}
    for name, line in of_vars.items():
        if name not in declared:
            tree.fault(line, f"[{name}:vars] is of a group that is not there")


def _read(words: str, place: _Place, tree: Tree, line: int) -> None:
    group = tree.group(place.group, line)
    if place.kind == "children":
        group.children[re.split(r"\s", words, maxsplit=1)[0]] = None
    elif place.kind == "vars":
        key, equals, value = words.partition("=")
        if not equals:
            tree.fault(line, f"a line of [{group.name[:80]}:vars] that is not KEY=VALUE")  # it may hold a password
            return
        said = Said(_value(value.strip()), line)
        keep(tree, key.strip(), said, vault=_is_vault(said.text), into=group.settings, whose=f"group {group.name}")
    else:
        _host(words, place, tree, line)


def _host(words: str, place: _Place, tree: Tree, line: int) -> None:
    try:
        name, *rest = shlex.split(words, comments=True)
    except ValueError as error:
        tree.fault(line, f"{words.split()[0][:80]!r} and what follows it cannot be read ({str(error).lower()})")
        return
    settings: dict[str, Said] = {}
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            tree.fault(line, f"{name[:80]}: a word behind it is not KEY=VALUE")
            continue
        keep(tree, key, Said(_value(value), line), vault=_is_vault(value), into=settings, whose=name[:80])
    tree.add_hosts(name, tree.group(place.group, line), settings, line)


def _value(text: str) -> str:
    found = _VALUE.fullmatch(text)
    if found is None:
        return text
    return found["number"] or _unquoted(found["quoted"], text)


def _unquoted(quoted: str, text: str) -> str:
    """A text in quotes, with the escapes of Python, as Ansible takes it; `text` where one of these is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a backslash that begins no escape: it stays
            value = str(ast.literal_eval(quoted))
        value.encode()  # half of a surrogate pair is no text
    except (SyntaxError, ValueError):
        return text
    return value


def _is_vault(text: str) -> bool:
    return text.startswith(("!vault", "$ANSIBLE_VAULT"))
