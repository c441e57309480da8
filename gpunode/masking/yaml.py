"""YAML as configuration files write it: keys by their indentation, lists, block scalars, values between brackets, and
`? key` with its `: value` on a line of its own.

Everything deeper than a secret key is its value, whatever it looks like: that is YAML's own rule, and it needs no
parser that could disagree.
"""

from __future__ import annotations

import re
from dataclasses import field

from gpunode.masking.flow import Flow
from gpunode.masking.names import MASK, is_plain, is_secret, unescaped
from gpunode.masking.shell import mask_tools
from gpunode.masking.tools import NAMED_FLAG, Command, names_tools
from gpunode.masking.words import lines_of, mask_words
from gpunode.regex import regex
from gpunode.values import dataclass

_INDENT = regex(r"[ \t]*")
_MARKS = regex(r"(?:[-?:][ \t]+)*(?:[-?:](?=\n|\r|$))?")
_PROPERTIES = regex(r"(?:[&!][^\s]*[ \t]+)*")
# The content of an alias is elsewhere: as a key it may be any.
_ALIAS = regex(r"(\*[^\s]+?)[ \t]*:(?=\s|$)")
_SIMPLE_KEY = regex(r"(?:\"[^\"\\]*\"|'[^']*'|[\w./][\w./ -]*)(?:[ \t]+#.*)?\s*")
# One character a round: with + inside of * a quoted value that is no key would be tried in 2^n ways.
_KEY = regex(
    r"(?:\"((?:[^\"\\\n]|\\[^\n])*)\"[ \t]*|'([^'\n]*)'[ \t]*"
    r"|([^\s#&*!|>%@`\"'\[\]{},][^\n:]*(?::[^\s][^\n:]*)*)):(?=\s|$)"
)
_TO_VALUE = regex(r"[ \t]*(?:[&!][^\s]*[ \t]+)*")
_BLOCK = regex(r"[|>][0-9+-]*[ \t]*(?:#[^\n]*)?\r?$")
_QUOTES = {'"': regex(r'(?:[^"\\]+|\\(?:.|\n)?)*"?'), "'": regex(r"(?:[^']+|'')*'?")}
_LINE_END = regex(r"[^\n]*")


@dataclass
class _Yaml:
    text: str
    depth: int
    out: list[str] = field(default_factory=list)
    under: int | None = None  # column of the secret key whose value these lines are
    block: int | None = None  # column of the secret key whose block scalar these lines are: nothing in it is a key
    dashes_belong: bool = False  # a list of it may stand at its own column
    listed: tuple[int, Command] | None = None  # column of a list's dashes, and what its items were so far
    command: Command | None = None  # that this line is, or goes on with
    goes_on: bool = False  # this line ends in a backslash
    asked: tuple[int, bool] | None = None  # column of a `? key` without its value, and whether that will be secret
    odd: bool = False
    named: int | None = None  # column of `name: K3S_TOKEN`, whose `value` is next to it

    def line(self, start: int) -> int:
        """One line, or the lines of one quoted or bracketed value. Answers where the next begins."""
        text, end = self.text, _end(_LINE_END, self.text, start)
        body = _end(_INDENT, text, start)
        self._begin(text[start:end])
        if not text[body:end].strip():
            return self._copy(start, end)
        inside = self._inside(body - start, text[body : body + 2])
        if self.block is not None:
            return self._copy(start, end, text[start:body] + MASK)
        if text[body] == "#":
            return self._copy(start, end, f"{text[start:body]}# {MASK}" if inside else mask_words(text[start:end]))
        item = _end(_MARKS, text, body)
        self.out.append(text[start:item])
        inside = self._marks(text[body:item], body - start, text[item:end]) or inside
        if item >= end:
            return self._close(end)
        mark = body - start + len(text[body:item].rstrip()) - 1  # column of the last; before the node itself if none
        return self._node(item, item - start, end, inside=inside, mark=mark)

    def _begin(self, line: str) -> None:
        goes_on = line.endswith(("\\", "\\\r"))
        if not self.goes_on:
            self.command = Command() if goes_on or names_tools(line) else None
        self.goes_on = goes_on

    def _marks(self, marks: str, column: int, key: str) -> bool:
        """What `-`, `?` and `:` before a node mean. Returns whether it is the value of a secret `? key`."""
        self._list(marks, column)
        asked, self.asked = self.asked, None
        if "?" in marks:
            first = marks.index("?")
            secret = is_secret(key.partition(" #")[0]) or marks[first:].strip() != "?" or not _SIMPLE_KEY.fullmatch(key)
            self.asked = (column + first, secret)
        if ":" in marks:
            answer = column + marks.index(":")
            if asked and asked[1] and answer >= asked[0]:
                self.under, self.dashes_belong = (answer, True) if self.under is None else (self.under, True)
                return True
        elif asked and column > asked[0]:
            self.asked = (asked[0], True)  # a key over lines may be any
        return False

    def _list(self, marks: str, column: int) -> None:
        if "-" not in marks:
            self.listed = None
            return
        last = column + marks.rindex("-")
        if self.listed is None or self.listed[0] != last:
            self.listed = (last, Command())

    def _node(self, start: int, column: int, end: int, *, inside: bool, mark: int) -> int:
        """What begins at `start`: a key and its value, or a value alone."""
        text = self.text
        found = _KEY.match(text, _end(_PROPERTIES, text, start), end)
        if key := found or _ALIAS.match(text, start, end):
            self.out.append(text[start : key.start()])
            return self._entry(key, column, end, inside=inside, unknown=not found)
        self.odd = self.odd or not (inside or column or text[start] in "-.%[{")
        if inside and _BLOCK.match(text, start, end):
            self.block = mark
        words = self.listed[1] if self.listed else None
        return self._value(start, end, secret=inside, words=words)

    def _copy(self, start: int, end: int, masked: str | None = None) -> int:
        self.out.append(self.text[start:end] if masked is None else masked)
        return self._close(end)

    def _inside(self, indent: int, mark: str) -> bool:
        """Whether this line belongs to the secret key above. Forgets what has ended."""
        if self.block is not None and indent <= self.block:
            self.block = None
        listed = self.dashes_belong and indent == self.under and mark.rstrip() == "-"
        if self.under is not None and indent <= self.under and not listed:
            self.under = None
        return self.under is not None

    def _entry(self, key: re.Match[str], column: int, end: int, *, inside: bool, unknown: bool) -> int:
        """`key: value`, where the key stands at `column`."""
        name = unescaped(next(part for part in key.groups() if part is not None).strip())
        value = _end(_TO_VALUE, self.text, key.end())
        secret = inside or unknown or is_secret(name) or (name == "value" and self.named == column)
        if name == "name":
            self.named = column if is_secret(self.text[value:end].strip().strip("\"'")) else None
        elif self.named is not None and column < self.named:
            self.named = None
        self.out.append(mask_tools(self.text[key.start() : min(value, end)], self.command))
        if secret and not inside:
            self.under, self.dashes_belong = column, value >= end
        if value >= end:
            return self._close(end)
        if _BLOCK.match(self.text, value, end):
            self.block = column if secret else None
            self.out.append(self.text[value:end])
            return self._close(end)
        return self._value(value, end, secret=secret, words=None)

    def _value(self, start: int, end: int, *, secret: bool, words: Command | None) -> int:
        """A value that begins at `start`; as an item of a list behind its `words`."""
        text = self.text
        pending = any(command is not None and command.pending for command in (self.command, words))
        if text[start] in "[{":
            flow = Flow(text, bare_words=True, depth=self.depth)
            stop = flow.value(start, secret=secret or pending, ends="bracket")
            self.out += flow.out
            self._no_longer(words)
            return self._rest(stop)
        if text[start] in _QUOTES:
            stop = _end(_QUOTES[text[start]], text, start + 1)
            taken = words.take(unescaped(text[start + 1 : stop - 1])) if words else None
            self._quoted(text[start:stop], taken, secret=secret or (pending and (taken == MASK or words is None)))
            self._no_longer(None)
            return self._rest(stop)
        bare = text[start:end].rstrip()
        taken = words.take(bare) if words else None
        if secret:
            self.out.append(bare if is_plain(bare) else MASK)
        else:
            self.out.append(taken or self._words(bare))
        self.out.append(text[start + len(bare) : end])
        return self._close(end)

    def _quoted(self, raw: str, taken: str | None, *, secret: bool) -> None:
        if taken and taken != MASK and not secret and "\n" not in raw:
            self.out.append(raw[0] + taken + (raw[-1] if raw[-1] == raw[0] else ""))
            return
        if "\n" in raw:
            self.out.append(raw[0] + lines_of(raw[1:-1]) + raw[-1] if secret or taken else mask_words(raw))
            return
        flow = Flow(raw, bare_words=True, depth=self.depth)
        flow.value(0, secret=secret)
        self.out += flow.out

    def _words(self, text: str) -> str:
        """A line, or its end, that may be of a script."""
        out = mask_words(text, self.command)
        if self.command and self.goes_on:
            flag = text.rstrip("\\ \t").rpartition(" ")[2]
            self.command.pending = self.command.pending or bool(NAMED_FLAG.fullmatch(flag) and is_secret(flag))
        return out

    def _no_longer(self, words: Command | None) -> None:
        """The value that was expected came."""
        for command in (self.command, words):
            if command:
                command.pending = False

    def _rest(self, start: int) -> int:
        """What follows a value on its line: a comment, as a rule."""
        end = _end(_LINE_END, self.text, start)
        self.out.append(self._words(self.text[start:end]))
        return self._close(end)

    def _close(self, end: int) -> int:
        if end < len(self.text):
            self.out.append("\n")
        return end + 1


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


def mask_yaml(text: str, *, depth: int = 0) -> tuple[str, bool]:
    """(masked text, whether every line at the left margin was an entry)."""
    yaml = _Yaml(text, depth)
    position = 0
    while position < len(text):
        position = yaml.line(position)
    return "".join(yaml.out), not yaml.odd
