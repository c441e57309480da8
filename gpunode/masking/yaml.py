"""YAML as configuration files write it: keys by their indentation, lists, block scalars, values between brackets.

Everything deeper than a secret key is its value, whatever it looks like: that is YAML's own rule, and it needs no
parser that could disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpunode.masking.flow import Flow
from gpunode.masking.names import MASK, is_plain, is_secret
from gpunode.masking.words import lines_of, mask_words

_INDENT = re.compile(r"[ \t]*")
_DASHES = re.compile(r"(?:-[ \t]+)*(?:-(?=\n|\r|$))?")
# One character a round: with + inside of * a quoted value that is no key would be tried in 2^n ways.
_KEY = re.compile(
    r"(?:\"((?:[^\"\\\n]|\\[^\n])*)\"[ \t]*|'([^'\n]*)'[ \t]*"
    r"|([^\s#&*!|>%@`\"'\[\]{},][^\n:]*(?::[^\s][^\n:]*)*)):(?=\s|$)"
)
_TO_VALUE = re.compile(r"[ \t]*(?:[&!][^\s]*[ \t]+)*")
_BLOCK = re.compile(r"[|>][0-9+-]*[ \t]*(?:#[^\n]*)?\r?$")
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*$")
_QUOTES = {'"': re.compile(r'(?:[^"\\]+|\\(?:.|\n)?)*"?'), "'": re.compile(r"(?:[^']+|'')*'?")}
_LINE_END = re.compile(r"[^\n]*")


@dataclass
class _Yaml:
    text: str
    depth: int
    out: list[str] = field(default_factory=list)
    under: int | None = None  # column of the secret key whose value these lines are
    block: int | None = None  # column of the secret key whose block scalar these lines are: nothing in it is a key
    dashes_belong: bool = False  # a list of it may stand at its own column
    after_flag: int | None = None  # indentation of a list whose last item was --token or its like
    odd: bool = False
    named: int | None = None  # column of `name: K3S_TOKEN`, whose `value` is beside it

    def line(self, start: int) -> int:
        """One line, or the lines of one quoted or bracketed value. Answers where the next begins."""
        text, end = self.text, _end(_LINE_END, self.text, start)
        body = _end(_INDENT, text, start)
        indent = body - start
        if not text[body:end].strip():
            return self._copy(start, end)
        inside = self._inside(indent, text[body : body + 2])
        if self.block is not None:
            return self._copy(start, end, text[start:body] + MASK)
        if text[body] == "#":
            return self._copy(start, end, f"{text[start:body]}# {MASK}" if inside else mask_words(text[start:end]))
        item = _end(_DASHES, text, body)
        self.out.append(text[start:item])
        follows_flag = item > body and self.after_flag == indent
        self.after_flag = None
        if item >= end:
            return self._close(end)
        key = _KEY.match(text, item, end)
        if key is None:
            self.odd = self.odd or not (inside or indent or item > body or text[body] in "-.%[{")
            return self._value(item, end, secret=inside or follows_flag, list_at=indent if item > body else None)
        return self._entry(key, item - start, end, inside=inside)

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

    def _entry(self, key: re.Match[str], column: int, end: int, *, inside: bool) -> int:
        """`key: value`, where the key stands at `column`."""
        name = next(part for part in key.groups() if part is not None).strip()
        value = _end(_TO_VALUE, self.text, key.end())
        secret = inside or is_secret(name) or (name == "value" and self.named == column)
        if name == "name":
            self.named = column if is_secret(self.text[value:end].strip().strip("\"'")) else None
        elif self.named is not None and column < self.named:
            self.named = None
        self.out.append(self.text[key.start() : min(value, end)])
        if secret and not inside:
            self.under, self.dashes_belong = column, value >= end
        if value >= end:
            return self._close(end)
        if _BLOCK.match(self.text, value, end):
            self.block = column if secret else None
            self.out.append(self.text[value:end])
            return self._close(end)
        return self._value(value, end, secret=secret, list_at=None)

    def _value(self, start: int, end: int, *, secret: bool, list_at: int | None) -> int:
        """A value that begins at `start`, as an item of a list at an indentation, or behind a key (None)."""
        text = self.text
        if text[start] in "[{":
            flow = Flow(text, bare_words=True, depth=self.depth)
            stop = flow.value(start, secret=secret, ends="bracket")
            self.out += flow.out
            return self._rest(stop)
        if text[start] in _QUOTES:
            stop = _end(_QUOTES[text[start]], text, start + 1)
            self._quoted(text[start:stop], secret=secret)
            if list_at is not None:
                self._remember_flag(text[start + 1 : stop - 1], list_at)
            return self._rest(stop)
        bare = text[start:end].rstrip()
        if secret:
            self.out.append(bare if is_plain(bare) else MASK)
        else:
            self.out.append(mask_words(bare))
            if list_at is not None:
                self._remember_flag(bare, list_at)
        self.out.append(text[start + len(bare) : end])
        return self._close(end)

    def _quoted(self, raw: str, *, secret: bool) -> None:
        if "\n" in raw:
            self.out.append(raw[0] + lines_of(raw[1:-1]) + raw[-1] if secret else mask_words(raw))
            return
        flow = Flow(raw, bare_words=True, depth=self.depth)
        flow.value(0, secret=secret)
        self.out += flow.out

    def _remember_flag(self, item: str, indent: int) -> None:
        self.after_flag = indent if _FLAG.match(item) and is_secret(item) else None

    def _rest(self, start: int) -> int:
        """What follows a value on its line: a comment, as a rule."""
        end = _end(_LINE_END, self.text, start)
        self.out.append(mask_words(self.text[start:end]))
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
