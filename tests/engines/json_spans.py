"""A second reader of JSON texts for tests: where each value stands, so that bytes can be compared too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(frozen=True)
class Value:
    start: int
    end: int
    members: tuple[tuple[str, int, Value], ...] | None = None  # (key, where its quote stands, value) of an object

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def whole(text: str) -> Value | None:
    """The one value of a legal text; None where there is none."""
    tokens = [(found[0], found.start(), found.end()) for found in TOKEN.finditer(text.removeprefix("\ufeff"))]
    mark = len(text) - len(text.removeprefix("\ufeff"))
    shifted = [(word, start + mark, end + mark) for word, start, end in tokens]
    return _value(shifted[::-1]) if shifted else None


def _value(left: list[tuple[str, int, int]]) -> Value:
    word, start, end = left.pop()
    if word == "{":
        members = []
        while left[-1][0] != "}":
            key, key_start, _ = left.pop()
            assert left.pop()[0] == ":"
            members.append((str(json.loads(key)), key_start, _value(left)))
            if left[-1][0] == ",":
                left.pop()
        return Value(start, left.pop()[2], tuple(members))
    if word == "[":
        while left[-1][0] != "]":
            _value(left)
            if left[-1][0] == ",":
                left.pop()
        return Value(start, left.pop()[2])
    return Value(start, end)
