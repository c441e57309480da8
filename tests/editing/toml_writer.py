"""Writes plain values as TOML in a style drawn by chance: headers, dotted keys, inline tables, quotes, comments.

Every comment is another one (`# c17 ...`), so that a lost one is seen. The same `random.Random` writes the same text.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+")
Path = tuple[str, ...]


class Writer:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.comments = 0
        self.indent = chance.choice(("", "", "  ", "\t"))  # for each level below the root
        self.equals = chance.choice((" = ", " = ", "=", "  =\t"))
        self.talk = chance.choice((0.0, 0.1, 0.4))  # how often a comment stands
        self.gaps = chance.choice((0.0, 0.5, 0.9))  # how often an empty line
        self.plain = chance.random() < 0.3  # headers only, as most people write
        self.quotes = chance.choice(("basic", "literal", "mixed"))

    def text(self, table: dict[str, Any]) -> str:
        if self.often(0.3):
            self.lines += [self.comment() for _ in range(self.chance.randint(1, 3))] + [""]
        self.table((), table, set())
        if self.often(0.3):
            self.lines.append(self.comment())
        return self.with_ends()

    def with_ends(self) -> str:
        """A text of several lines in a value is one of `lines`, and its ends are drawn as the others are."""
        style = self.chance.choice(("lf", "lf", "lf", "crlf", "mixed", "one"))
        lines = "\n".join(self.lines).split("\n")
        odd = self.chance.randrange(len(lines))
        ends = ["\n"] * len(lines)
        for at in range(len(lines)):
            if style == "crlf" or (style == "mixed" and self.often(0.5)) or (style == "one" and at == odd):
                ends[at] = "\r\n"
        if self.often(0.15):
            ends[-1] = ""
        return "".join(line + end for line, end in zip(lines, ends, strict=True))

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def comment(self) -> str:
        self.comments += 1
        tail = self.chance.choice(("", " keep me", ' [a.b] = "x"', " größe", " ''' \"\"\"", "\t{", " # twice "))
        return f"#{self.chance.choice(('', ' ', '# '))}c{self.comments}.{tail}"

    def say(self, depth: int, text: str) -> None:
        if self.often(self.talk):
            self.lines.append(self.indent * depth + self.comment())
        beside = "  " + self.comment() if self.often(self.talk) else self.chance.choice(("", "", "", " ", "\t"))
        self.lines.append(self.indent * depth + text + beside)
        if self.often(self.talk / 3):
            self.lines.append(self.comment())

    def table(self, path: Path, table: dict[str, Any], dotted: set[Path]) -> None:
        """The keys of a table whose header is written, then the tables below it."""
        headed, entries = [], list(table.items())
        self.chance.shuffle(entries)
        for key, value in entries:
            how = self.how(value)
            if how == "header":
                headed.append((key, value))
            elif how == "dotted":
                self.dotted(len(path), (key,), value)
            else:
                self.say(len(path), f"{self.key(key)}{self.equals}{self.value(value, len(path))}")
        for key, value in headed:
            self.headed((*path, key), value, dotted)

    def how(self, value: object) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "header"
        if not isinstance(value, dict):
            return "key"
        if self.plain or not value:
            return "header"
        return self.chance.choice(("header", "header", "header", "dotted", "inline"))

    def headed(self, path: Path, value: Any, dotted: set[Path]) -> None:
        if isinstance(value, list):
            for item in value:
                self.header(path, "[[{}]]")
                self.table(path, item, dotted)
            return
        below = [key for key, inner in value.items() if isinstance(inner, dict) and inner]
        if len(below) == len(value) > 0 and self.often(0.6):  # no header of its own
            for key in below:
                self.headed((*path, key), value[key], dotted)
        elif below and self.often(0.2):  # the tables below it come first
            for key in below:
                self.headed((*path, key), value[key], dotted)
            self.header(path)
            self.table(path, {key: inner for key, inner in value.items() if key not in below}, dotted)
        else:
            self.header(path)
            self.table(path, value, dotted)

    def header(self, path: Path, form: str = "[{}]") -> None:
        if self.often(self.gaps):
            self.lines += [""] * self.chance.choice((1, 1, 1, 2))
        pad = self.chance.choice(("", "", "", " "))
        name = self.chance.choice((".", ".", ".", " . ")).join(map(self.key, path))
        self.say(len(path) - 1, form.format(f"{pad}{name}{pad}"))

    def dotted(self, depth: int, path: Path, value: Any) -> None:
        for key, inner in value.items():
            if isinstance(inner, dict) and inner and self.often(0.7):
                self.dotted(depth, (*path, key), inner)
            else:
                name = ".".join(map(self.key, (*path, key)))
                self.say(depth, f"{name}{self.equals}{self.value(inner, depth)}")

    def key(self, name: str) -> str:
        if BARE.fullmatch(name) and not self.often(0.1):
            return name
        return self.quoted(name)

    def quoted(self, text: str) -> str:
        literal = self.quotes == "literal" or (self.quotes == "mixed" and self.often(0.5))
        if literal and "'" not in text and text.isprintable():
            return f"'{text}'"
        return json.dumps(text, ensure_ascii=False)

    def value(self, value: Any, depth: int) -> str:
        if isinstance(value, dict):
            inner = ", ".join(f"{self.key(k)}{self.equals}{self.value(v, depth)}" for k, v in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        if isinstance(value, list):
            return self.list(value, depth)
        if isinstance(value, str):
            return self.string(value)
        return json.dumps(value)

    def list(self, items: list[Any], depth: int) -> str:
        words = [self.value(item, depth + 1) for item in items]
        if not self.often(0.3) or not items:
            return f"[{', '.join(words)}]" if self.often(0.8) else f"[ {' , '.join(words)}, ]" if words else "[ ]"
        inner, lines = self.indent * (depth + 1) or " ", ["[" + (" " + self.comment() if self.often(self.talk) else "")]
        for number, word in enumerate(words):
            comma = "," if number + 1 < len(words) or self.often(0.7) else ""
            lines.append(f"{inner}{word}{comma}{'  ' + self.comment() if self.often(self.talk) else ''}")
            if self.often(self.talk / 2):
                lines.append(inner + self.comment())
        return "\n".join([*lines, self.indent * depth + "]"])

    def string(self, text: str) -> str:
        """In several lines where it has some, or by chance; what reads as more TOML is only text."""
        if "\n" not in text:
            return f'"""{text}"""' if self.often(0.03) and text.isalnum() else self.quoted(text)
        if "'''" not in text and self.often(0.5):
            return f"'''\n{text}'''"
        return '"""\n' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""'
