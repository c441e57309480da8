"""Secrets inside one stretch of text: addresses, `NAME=value`, `--flag value`, headers, and forms known by sight.

Every pass reads a character a bounded number of times: a run of name characters is matched from its start only (the
look-behind), and a value is searched from where the last one ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gpunode.masking.names import MASK, is_plain, is_secret
from gpunode.masking.tools import Command, names_tools
from gpunode.regex import regex

_WORD = regex(r"[^\s\"'`<>]+")
_NAME = regex(r"(?<![\w.-])([\w.-]+)(\\?[\"']?[ \t]*(?::=|=>|=|:(?![:/]))[ \t]*)")
# A name with escapes, as "to\\u006ben" has it; none begins behind or inside of one.
_ESCAPE = r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|U[0-9A-Fa-f]{8})"
_HAS_ESCAPE = regex(_ESCAPE)
_ESCAPED_NAME = regex(
    rf"(?<![\w.-])(?!(?<=\\)(?:u[0-9A-Fa-f]{{4}}|x[0-9A-Fa-f]{{2}}|U[0-9A-Fa-f]{{8}}))"
    rf"((?:[\w.-]+|{_ESCAPE})(?:{_ESCAPE}[\w.-]*)*)(\\?[\"']?[ \t]*(?::=|=>|=|:(?![:/]))[ \t]*)"
)
_FLAG = regex(r"(?<![\w.-])--?([A-Za-z][\w.-]*)(\\?[\"']?,?(?:[ \t]|\\\r?\n)+\\?[\"']?)")
_NEXT_FLAG = regex(r"--[A-Za-z]|-[A-Za-z]+(?![\w-])|[;|&]")
_QUOTED = regex(r"\"((?:[^\"\\\n]+|\\[^\n]?)*)\"?|'([^'\n]*)'?")
_BARE = regex(r"[^\s\"'`]*(?:[\"'`]+[^\s\"'`,;)}\]]+)*")
_TO_LINE_END = regex(r"[^\n]*")
_TO_COMMA = regex(r"[^\s,}\]]*")
_TO_QUOTE = regex(r"[^\n\"']*")
_TO = {'"': regex(r"[^\n\"]*"), "'": regex(r"[^\n']*")}
_BRACKET = regex(r"[\[\]{}]")
_LEAF = regex(r"\"(?:[^\"\\\n]+|\\[^\n]?)*\"?|'[^'\n]*'?|#[^\n]*|[^\s,\[\]{}\"'#]+")
_UNFINISHED = regex(r"(?i)(\b(?:https?|ftp|socks[45]h?|mysql|postgres(?:ql)?|nats|redis|amqps?)://)([^/?#,]*:[^/?#,]*)")
_AUTHORITY = regex(r"[^/?#]*")
# Before a name that begins a line: marks of comments, diffs and lists, and what systemd and shells put there.
_LINE_START = regex(r"[ \t]*(?:[#;+|@>-]{1,4}[ \t]*|//[ \t]*)*(?:(?:export|set|env|arg=)[ \t]*)?[\"']?")
_SCHEME = regex(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*:/{1,3}")
# Hosts as --ssh and --jump take them: of "root@gpu[01-03]:22,ann@db:2222" no part is a password, what is behind ":" are
# ports. A word with any other part is none of these.
_USER, _HOST = r"[\w.+\\$-]+@", r"(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[\w.-]+(?:\[[\d,-]+\][\w.-]*)*)"
_TARGET = rf"(?:{_USER})?{_HOST}(?::\d{{1,5}})?"
_TARGETS = regex(rf"(?:[\w-]+=)?{_TARGET}(?:,{_TARGET})+[.,;)\]}}]*")
_HEADER_SCHEME = regex(r"(?i)(?<![\w-])(basic|bearer|splunk|apikey|negotiate)([ \t]+)([\w+/=.~:-]{6,})")
# Join tokens of k3s ("K10<hash>::server:..."), k0s (gzip, base64) and kubeadm, JWTs, keys of AWS; and of GitHub,
# GitLab, NGC and Hugging Face, which no other word looks like, behind an "=" too.
_BY_SIGHT = regex(
    r"(?<![\w.+/=-])(?:K10[0-9a-f]{32,}(?:::[^\s\"']*)?|H4sI[\w+/=]{24,}|eyJ[\w-]{8,}\.[\w.-]+|AKIA[0-9A-Z]{16}"
    r"|[a-z0-9]{6}\.(?=[a-z]{0,15}[0-9])[a-z0-9]{16})(?![\w-])"
    r"|(?<![\w-])(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|nvapi-[\w-]{16,}|hf_[A-Za-z0-9]{30,})(?![\w-])"
)
# netrc(5), on one line or several: without a login before it "password" is a word of English.
_NETRC = regex(
    r"((?<![\w.-])(?:machine\s{1,20}\S{1,255}|default)(?:\s{1,20}(?:login|account)\s{1,20}[^\s,;]{1,255}){1,2}"
    r"\s{1,20}password\s{1,20})\S+"
)
_DIGEST = ("sha256:", "sha512:", "sha384:")
_PEM = regex(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = regex(r"-----END [A-Z0-9 ]{0,40}-----")


def mask_words(text: str, command: Command | None = None) -> str:
    """`text` (one line or many) without the secrets that its own words give away. `command`: what it goes on with."""
    if "@" in text or "://" in text:
        text = _WORD.sub(lambda found: _mask_address(found[0]), text)
    if command is not None or names_tools(text):
        from gpunode.masking.shell import mask_tools

        text = mask_tools(text, command)
    text = _after(text, _ESCAPED_NAME if _HAS_ESCAPE.search(text) else _NAME, _value)
    text = _after(text, _FLAG, _argument)
    text = _HEADER_SCHEME.sub(_header, text)
    if "login" in text:
        text = _NETRC.sub(rf"\1{MASK}", text)
    return _BY_SIGHT.sub(MASK, text)


def _header(found: re.Match[str]) -> str:
    """ "basic" and "bearer" are words of English as well: what follows must look like no word."""
    if found[3].isalpha() and (found[3].islower() or found[3] == MASK):
        return found[0]
    return f"{found[1]}{found[2]}{MASK}"


class _Lines:
    """Where the line of a place in the text begins, asked with growing places; each is found once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._looked = 0
        self._first = -1  # end of what may stand before the first name of the line

    def is_first(self, place: int) -> bool:
        """Whether only indentation and marks stand before `place` on its line."""
        newline = self.text.rfind("\n", self._looked, place)
        self._looked = max(self._looked, place)
        if newline >= 0 or self._first < 0:
            found = _LINE_START.match(self.text, newline + 1)
            assert found is not None
            self._first = found.end()
        return self._first >= place


def _after(text: str, name: re.Pattern[str], span_of: Callable[[_Lines, re.Match[str]], tuple[int, int]]) -> str:
    """What `span_of` finds behind each secret name, masked."""
    out: list[str] = []
    lines, done, position = _Lines(text), 0, 0
    while found := name.search(text, position):
        position = found.end()
        if is_secret(found[1]):
            start, end = span_of(lines, found)
            if start < end and not is_plain(text[start : min(end, start + 8)]):
                hide = _leaves if text[start - 1 : start] in ("[", "{") else lines_of
                out += (text[done:start], hide(text[start:end]))
                done = end
            position = max(position, end)
        elif found[2][-1:] in "=:":
            position -= 1  # `arg=--token=x`: the separator may stand before the next name
    return "".join((*out, text[done:]))


def lines_of(text: str) -> str:
    """MASKED in place of `text`, and once more, as far to the right, for every further line that holds something."""
    if "\n" not in text:
        return MASK
    first, *more = text.split("\n")
    return "\n".join((MASK if first.strip() else first, *map(_masked_line, more)))


def _leaves(text: str) -> str:
    """What stands between brackets: each word and each string masked, commas and line ends kept."""
    return _LEAF.sub(_leaf, text)


def _leaf(found: re.Match[str]) -> str:
    first = found[0][0]
    if first == "#":
        return f"# {MASK}"
    return f"{first}{MASK}{first}" if first in "\"'" else MASK


def _value(lines: _Lines, found: re.Match[str]) -> tuple[int, int]:
    """Where the value of NAME=value begins and ends. Unclear ends are late ends."""
    text, start = lines.text, found.end()
    first = lines.is_first(found.start())
    if found[1] in ("PWD", "OLDPWD") and text.startswith("/", start):
        return start, start  # the shell's own, a directory
    if quoted := _QUOTED.match(text, start):
        return _inside(quoted)
    if text[start : start + 1] in ("[", "{"):
        return _bracket(text, start)
    quote = text[found.start() - 1 : found.start()]
    if quote in _TO and not found[2].lstrip("\\").startswith(quote):  # "NAME=a b c": to the quote's own end
        return start, _end(_TO[quote], text, start)
    if _is_header(found[1]):
        return start, _without_punctuation(text, start, _end(_TO_QUOTE, text, start))
    to_end = _TO_LINE_END if first else _TO_COMMA if found[2][0] in "\\\"'" else _BARE
    return start, _without_punctuation(text, start, _end(to_end, text, start))


def _argument(lines: _Lines, found: re.Match[str]) -> tuple[int, int]:
    """Where the word after a flag begins and ends; another flag is no value."""
    text, start = lines.text, found.end()
    if _NEXT_FLAG.match(text, start) or start >= len(text):
        return start, start
    if (quote := found[2][-1]) in _TO:  # "--token", "value"
        return start, _end(_TO[quote], text, start)
    return start, _without_punctuation(text, start, _end(_BARE, text, start))


def _is_header(name: str) -> bool:
    return name.lower().endswith(("authorization", "cookie"))


def _inside(quoted: re.Match[str]) -> tuple[int, int]:
    group = 1 if quoted[1] is not None else 2
    return quoted.span(group)


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


def _bracket(text: str, start: int) -> tuple[int, int]:
    """What is between the bracket at `start` and the one that closes it; to the end of the text where none does."""
    depth = 0
    for found in _BRACKET.finditer(text, start):
        depth += 1 if found[0] in "[{" else -1
        if depth == 0:
            return start + 1, found.start()
    return start + 1, len(text)


def _without_punctuation(text: str, start: int, end: int) -> int:
    """Closing brackets, commas and quotes behind a bare value belong to what is around it."""
    while end > start and text[end - 1] in " \t\r,;)}]\"'`\\":
        end -= 1
    return end


def _mask_address(word: str) -> str:
    """scheme://user:PASS@host and user:PASS@host, well-formed or not: the user part goes."""
    last = word.rfind("@")
    if _TARGETS.fullmatch(word):
        return word
    if last < 1:
        return _UNFINISHED.sub(_without_user, word)
    out: list[str] = []
    done, schemes = 0, False
    for scheme in _SCHEME.finditer(word, 0, last):
        schemes = True
        if scheme.end() < done:
            continue
        start, end = scheme.end(), _end(_AUTHORITY, word, scheme.end())
        at = word.rfind("@", start, end)
        port = word[start:end].rpartition(":")[2] if ":" in word[start:end] else "0"
        if at < 0 and not port.isdigit() and end <= last:
            at = last  # user:pa/ss@host: a slash, ? or # in the password
        if at > start:
            out += (word[done:start], MASK)
            done = at
    if not schemes and not word.startswith(_DIGEST, last + 1) and (colon := word.find(":", 0, last)) > 0:
        start = max(word.rfind(mark, 0, colon) for mark in "=,([{") + 1
        if not word.startswith("/", start):
            out, done = [word[:start], MASK], last
    return "".join((*out, word[done:]))


def _without_user(found: re.Match[str]) -> str:
    """http://user:PASS without an @: truncated, or mistyped. A port is a number."""
    host, _, port = found[2].rpartition(":")
    number = port.rstrip(".,;)]}\\")
    return (
        found[0] if host.startswith("[") or (":" not in host and (number.isdigit() or not number)) else found[1] + MASK
    )


def mask_pem(text: str) -> str:
    """The body of private keys; a key without its end is masked to the end of the text."""
    out: list[str] = []
    done = 0
    while begin := _PEM.search(text, done):
        end = _PEM_END.search(text, begin.end())
        stop = end.start() if end else len(text)
        out += (text[done : begin.end()], _body(text[begin.end() : stop]))
        done = stop
    return "".join((*out, text[done:]))


def _body(text: str) -> str:
    """Each line masked behind its indentation; escaped line ends (JSON) become one word."""
    lines = text.split("\n")
    if len(lines) == 1:
        return f"\\n{MASK}\\n" if "\\n" in text else MASK
    return "\n".join(_masked_line(line) for line in lines)


def _masked_line(line: str) -> str:
    body = line.lstrip(" \t|+-")
    return line if not body.strip() else line[: len(line) - len(body)] + MASK
