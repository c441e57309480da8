"""Values in brackets and quotes: JSON whole, and what TOML and YAML write between brackets. A scanner without
recursion that reads every character once and never gives up: what is no value is masked as words are."""

from __future__ import annotations

import json
import re
from dataclasses import field

from gpunode.masking.names import MASK, holds_secrets, is_plain, is_secret, unescaped
from gpunode.masking.tools import Command
from gpunode.masking.words import lines_of, mask_words
from gpunode.regex import regex
from gpunode.values import dataclass

_TOKEN = regex(
    r'"""(?:[^"\\]+|\\(?:.|\n)?|"(?!""))*(?:""")?'
    r"|'''(?:[^']+|'(?!''))*(?:''')?"
    r'|"(?:[^"\\\n]+|\\[^\n]?)*"?|' + r"'[^'\n]*'?"
    r"|[\[\]{},:=]|\s+|(?<![^\s\[\]{},])#[^\n]*|[^\s\[\]{},:=\"']+|.",
    re.DOTALL,
)
_HALF_ESCAPE = regex(r"\\(?:u[0-9a-fA-F]{0,3})?$")
_BEFORE_KEY = regex(r"(?:\?\s+)?(?:[&!]\S*\s+)*")
_STRING = json.JSONDecoder(strict=False)  # of one string, whose end was found already
_DEEPEST_TEXT = 3  # a file in a string in a file


@dataclass
class _Frame:
    """An open bracket."""

    object: bool
    secret: bool  # all in it is
    inner: bool = True  # whether a bracket is open, or it is what is around all
    key: str | None = None  # of the entry that is being read
    alias: bool = False  # that key is *x of YAML: its content is elsewhere
    named: bool = False  # {"name": "K3S_TOKEN", "value": ...}
    command: Command | None = None  # ["--token", ...]
    run: list[str] = field(default_factory=list)  # tokens of the key or the value


@dataclass
class Flow:
    """One value's scanner."""

    text: str
    bare_words: bool = False  # YAML: MASKED needs no quotes; in JSON and TOML a masked number becomes a string
    depth: int = 0  # of texts in strings
    broken: bool = False  # a bracket closes what was not open, or something never closes
    out: list[str] = field(default_factory=list)

    def value(self, start: int, *, secret: bool, ends: str = "") -> int:
        """Mask the value at `start` into `out`; answers where it ends.

        `ends`: "line", where what is outside brackets ends with its line; "bracket", with its bracket; "": the text.
        """
        frames = [_Frame(object=False, secret=secret, inner=False)]
        position = start
        for found in _TOKEN.finditer(self.text, start):
            token = found[0]
            if ends == "line" and len(frames) == 1 and token[0].isspace() and "\n" in token:
                break
            position = found.end()
            self._take(token, frames)
            if ends == "bracket" and len(frames) == 1:
                break
        self.broken = self.broken or len(frames) > 1
        while frames:
            self._flush(frames.pop())
        return position

    def _take(self, token: str, frames: list[_Frame]) -> None:
        frame = frames[-1]
        if token in ("[", "{") and not _solid(frame.run):
            self._flush(frame, keep=True)
            frames.append(_Frame(token == "{", frame.secret or _names_secret(frame)))
            self.out.append(token)
        elif token in ("]", "}"):
            self._flush(frame)
            self.out.append(token)
            if len(frames) > 1:
                frames.pop()
                if command := frames[-1].command:
                    command.pending = False
            else:
                self.broken = True
        elif token == "," and len(frames) > 1:
            self._flush(frame)
            self.out.append(token)
        elif token in (":", "=") and frame.key is None and _solid(frame.run) and self._may_be_key(frame):
            frame.key = _key_of("".join(frame.run).strip())
            frame.alias = self.bare_words and "".join(frame.run).lstrip("? \t\r\n").startswith("*")
            self.out += (*frame.run, token)
            frame.run = []
        elif token.startswith("#"):
            self._flush(frame, keep=True)
            secret = frame.secret or _names_secret(frame)
            self.out.append(f"# {MASK}" if secret else mask_words(token))
        else:
            frame.run.append(token)

    def _may_be_key(self, frame: _Frame) -> bool:
        """In YAML's lists a pair needs no braces: ["token": x], [? token : x]."""
        return frame.object or (self.bare_words and frame.inner and "".join(frame.run).lstrip()[0] in "\"'?")

    def _flush(self, frame: _Frame, *, keep: bool = False) -> None:
        """Write the entry that was read. `keep`: the entry goes on behind a bracket or a comment."""
        raw = "".join(frame.run)
        core = raw.strip()
        if core:
            before = raw[: len(raw) - len(raw.lstrip())]
            self.out += (before, self._scalar(core, frame), raw[len(raw.rstrip()) :])
        else:
            self.out.append(raw)
        frame.run = []
        if not keep:
            frame.key = None

    def _scalar(self, core: str, frame: _Frame) -> str:
        content = _unquoted(core)
        if frame.object and frame.key is not None and frame.key.lower() in ("name", "key"):
            frame.named = is_secret(content)
        quote, taken = _quote_of(core), None if frame.object else _taken(frame, content)
        if frame.secret or _names_secret(frame) or taken == MASK:
            return self._masked(core, content)
        if taken:
            return f"{quote}{taken}{quote}" if _closed(core, quote) else taken
        if not quote:
            return mask_words(core)
        if not _closed(core, quote):
            return self._cut_off(core)
        if len(quote) == 3 or quote == "'":
            return quote + self._text(core[len(quote) : -len(quote)]) + quote
        return self._string(core, content)

    def _masked(self, core: str, content: str) -> str:
        quote = _quote_of(core)
        if is_plain(content) or content == MASK:
            return core
        if not quote:
            return lines_of(core) if self.bare_words or "\n" in core else f'"{MASK}"'
        if not _closed(core, quote):
            return quote + lines_of(core[len(quote) :])
        return quote + lines_of(core[len(quote) : -len(quote)]) + quote

    def _string(self, core: str, content: str) -> str:
        """A string with escapes: only where something was masked is it written anew."""
        masked = self._text(content)
        if masked == content:
            return core
        if not _decodable(core):
            return f'"{masked}"'
        # An escaped surrogate must not become a byte that was never there.
        return json.dumps(masked, ensure_ascii="\\u" in core)

    def _cut_off(self, core: str) -> str:
        """A string that never closes: its content so far, without a last escape that is not whole."""
        whole = _HALF_ESCAPE.sub("", core)
        if core[0] == '"' and "\n" not in core and _decodable(f'{whole}"'):
            content = _unquoted(f'{whole}"')
            if (masked := self._text(content)) != content:
                return json.dumps(masked, ensure_ascii="\\u" in core)[:-1]
        return mask_words(core)

    def _text(self, content: str) -> str:
        from gpunode.masking.forms import masked

        whole = "\n" in content or content.lstrip()[:1] in ("{", "[")
        if whole and self.depth < _DEEPEST_TEXT:
            return masked(content, depth=self.depth + 1)
        return mask_words(content)


def _taken(frame: _Frame, content: str) -> str | None:
    frame.command = frame.command or Command()
    return frame.command.take(unescaped(content) if "\\" in content else content)


def _key_of(core: str) -> str:
    """A key as a parser reads it; YAML writes "? " before some, and tags and anchors."""
    core = _BEFORE_KEY.sub("", core, count=1)
    return unescaped(_unquoted(core)) if core.startswith('"') else _unquoted(core)


def _names_secret(frame: _Frame) -> bool:
    if frame.key is None:
        return False
    return frame.alias or holds_secrets(frame.key) or (frame.named and frame.key.lower() == "value")


def _solid(run: list[str]) -> bool:
    return any(not token.isspace() for token in run)


def _quote_of(core: str) -> str:
    if core[:3] in ('"""', "'''") and len(core) >= 6:
        return core[:3]
    return core[0] if core[0] in "\"'" else ""


def _closed(core: str, quote: str) -> bool:
    return len(core) >= 2 * len(quote) and core.endswith(quote)


def _unquoted(core: str) -> str:
    """The content of a string or bare word; of a string with unknown escapes its own bytes."""
    quote = _quote_of(core)
    if not quote or not _closed(core, quote):
        return core.strip("\"'")
    inner = core[len(quote) : len(core) - len(quote)]
    if quote[0] == '"' and "\\" in inner and _decodable(core):
        return str(_STRING.decode(core))
    return inner


def _decodable(core: str) -> bool:
    """TOML has escapes that JSON does not, and people write others."""
    try:
        return isinstance(_STRING.decode(core), str)
    except ValueError:
        return False


def mask_json(text: str, *, depth: int = 0) -> tuple[str, bool]:
    """(masked text, whether it was whole). Numbers behind secret names become strings."""
    flow = Flow(text, depth=depth)
    flow.value(0, secret=False)
    return "".join(flow.out), not flow.broken
