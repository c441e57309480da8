"""Takes things out of a YAML file inside its own text, by the places that the parser gives: all else stays as it is.

Every edit is read again: where more would change than was meant, the file is refused.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from gpunode import foreign
from gpunode.advice import named
from gpunode.errors import ConfigFileError
from gpunode.foreign import BOM, NotRead
from gpunode.regex import regex
from gpunode.values import dataclass

_REST = regex(r"[ \t]*,?[ \t]*(#.*)?")  # of a line, behind a value
_COMMENT = regex(r"[ \t]*#")
Keys = tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A value of the file and where it stands, quotes included."""

    start: int
    end: int
    place: str  # "LINE:COLUMN"
    text: str = ""  # of a word
    members: tuple[tuple[Node, Node], ...] | None = None  # of a mapping
    items: tuple[Node, ...] | None = None  # of a list
    flow: bool = False  # {...} or [...]

    @property
    def is_word(self) -> bool:
        return self.members is None and self.items is None

    @cached_property
    def plain(self) -> object:
        """As dicts, lists and words."""
        if self.members is not None:
            return {key.text: value.plain for key, value in self.members}
        return [one.plain for one in self.items] if self.items is not None else self.text

    def get(self, key: str) -> Node | None:
        """The value of a mapping's member; None where it has none, or is no mapping."""
        return next((value for name, value in self.members or () if name.text == key), None)


@dataclass(frozen=True)
class Document:
    """A file that is one mapping, or nothing."""

    path: str
    text: str
    root: Node

    @staticmethod
    def read(path: str, text: str) -> Document:
        """Raises ConfigFileError with line and column: no YAML, no mapping, or a key that stands twice."""
        try:
            node = foreign.read_yaml(text)
        except NotRead as found:
            raise _fault(path, f"{found.line}:{found.column}", found.what) from None
        root = Node(0, 0, "1:1", members=()) if node is None or node.value in ("", "~", "null") else _node(path, node)
        if root.members is None:
            raise _fault(path, root.place, "the file must hold one mapping")
        return Document(path, text, root)

    def get(self, keys: Keys) -> Node | None:
        node: Node | None = self.root
        for key in keys:
            node = node.get(key) if node else None
        return node

    def without(self, keys: Keys) -> str:
        """The text without the member at `keys`, and without the mapping above it where that is all of it."""
        parent = self._at(keys[:-1])
        members = parent.members or ()
        if len(members) == 1 and len(keys) > 1:
            return self.without(keys[:-1])
        starts = [key.start for key, _ in members]
        key, value = next(pair for pair in members if pair[0].text == keys[-1])
        return self._proven(self._cut(parent, starts, key.start, value), keys, None)

    def without_item(self, keys: Keys, index: int) -> str:
        """The text without one item of the list at `keys`, and without the list where that is all of it."""
        parent = self._at(keys)
        listed = parent.items or ()
        if len(listed) == 1:
            return self.without(keys)
        starts = [one.start if parent.flow else self.text.rfind("-", 0, one.start) for one in listed]
        text = self._cut(parent, starts, starts[index], listed[index])
        return self._proven(text, keys, [one.plain for n, one in enumerate(listed) if n != index])

    def with_word(self, keys: Keys, index: int | None, word: str) -> str:
        """The text with another word at `keys`, or as one item of the list there; in the quotes of the old one."""
        parent = self._at(keys)
        old = parent if index is None else (parent.items or ())[index]
        raw = self.text[old.start : old.end]
        quote = raw[0] if raw[:1] in ("'", '"') else ""
        if raw != f"{quote}{old.text}{quote}":
            raise self.refused(old, "it is spelled with escapes, an anchor or over several lines")
        text = self.text[: old.start] + quote + word + quote + self.text[old.end :]
        listed = [word if n == index else one.plain for n, one in enumerate(parent.items or ())]
        return self._proven(text, keys, word if index is None else listed)

    def refused(self, node: Node, what: str) -> ConfigFileError:
        return _fault(self.path, node.place, what)

    def _at(self, keys: Keys) -> Node:
        node = self.get(keys)
        if node is None:
            raise ValueError(f"{self.path} has no {'.'.join(keys)}")
        return node

    def _cut(self, parent: Node, starts: list[int], start: int, value: Node) -> str:
        """The text without what begins at `start` and ends with `value`; `starts`: where its siblings begin."""
        text, here = self.text, starts.index(start)
        if parent.flow:
            if here < len(starts) - 1:
                return text[:start] + text[starts[here + 1] :]
            before = text.rfind(",", 0, start) if here else start
            return text[:before] + text[value.end :]
        begin = max(text.rfind("\n", 0, start) + 1, len(BOM) if text.startswith(BOM) else 0)
        end = text.find("\n", _end(value)) + 1 or len(text)
        if text[begin:start].strip(" "):
            raise self.refused(value, "it begins behind something else on its line")
        if not _REST.fullmatch(text[_end(value) : end].rstrip("\r\n")):
            raise self.refused(value, "something stands behind it on its line")
        comments = [line for line in text[begin:end].splitlines(keepends=True) if _COMMENT.match(line)]
        return text[:begin] + "".join(comments) + text[end:]

    def _proven(self, text: str, keys: Keys, value: object) -> str:
        """`text`, if nothing differs but what is at `keys`; None: that is gone."""
        try:
            after = foreign.read_yaml_words(text) or {}
        except NotRead:
            after = None
        if after != _with(self.root.plain, keys, value):
            node = self._at(keys)
            raise self.refused(node, f"{'.'.join(keys)} cannot be edited without changing something else")
        return text


def _end(node: Node) -> int:
    """Where its last word ends: a block's own end is behind the comments that follow it."""
    inner = node.members[-1][1] if node.members else node.items[-1] if node.items else None
    return node.end if node.flow or inner is None else _end(inner)


def _with(before: object, keys: Keys, value: object) -> object:
    if not isinstance(before, dict):
        return before
    key, *rest = keys
    inner = _with(before.get(key), tuple(rest), value) if rest else value
    gone = inner is None or inner == {}
    return {name: inner if name == key else one for name, one in before.items() if name != key or not gone}


def _node(path: str, node: Any) -> Node:
    """PyYAML's node as our own. Raises ConfigFileError for a key that stands twice, or is no word."""
    start, end = node.start_mark, node.end_mark
    place = f"{start.line + 1}:{start.column + 1}"
    if isinstance(node.value, str):
        return Node(start.index, end.index, place, node.value)
    if not node.value or not isinstance(node.value[0], tuple):
        listed = tuple(_node(path, one) for one in node.value)
        is_map = node.tag.endswith(":map")
        return Node(
            start.index,
            end.index,
            place,
            members=() if is_map else None,
            items=None if is_map else listed,
            flow=bool(node.flow_style),
        )
    members = tuple((_node(path, key), _node(path, value)) for key, value in node.value)
    seen: set[str] = set()
    for key, _ in members:
        if not key.is_word or key.text in seen:
            what = f"key {key.text[:60]!r} stands twice" if key.is_word else "a key that is no word"
            raise _fault(path, key.place, what)
        seen.add(key.text)
    return Node(start.index, end.index, place, members=members, flow=bool(node.flow_style))


def _fault(path: str, place: str, what: str) -> ConfigFileError:
    return ConfigFileError(
        f"{path}:{place}: {what}",
        evidence="the file was not touched",
        remedy=f"correct {named(path)} at that place, and run gpunode again",
    )
