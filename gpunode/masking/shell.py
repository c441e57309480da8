"""Commands inside a text, quoted in whatever way: `sh -c 'curl -u user:PW ...'`, scripts, what a log repeats."""

from __future__ import annotations

import re

from gpunode.masking.names import MASK
from gpunode.masking.tools import TOOLS, WORDS, Command, names_tools
from gpunode.regex import regex

_NAMES = "|".join(sorted(map(re.escape, {*TOOLS, *WORDS}), key=len, reverse=True))
_MARK = regex(
    rf"(?<![\w.-])(?:(?P<name>{_NAMES})(?![\w-])|(?P<flag>--?[A-Za-z#0-6:]))"
    r"|(?P<goes_on>\\\r?\n)|(?P<line>\n)|(?P<next>(?:;|\|\|?|&&)(?=\s))|(?P<doubt>[\"'\\])"
)
# The flag may stand in quotes and lists of its own: "-u", "user:PW"
_TO_NEXT = regex(r"\\?[\"']?,?(?:[ \t]|\\\r?\n)+(\\?[\"']?)")
_TO_FIRST = regex(r"[ \t]*(\\?[\"']?)")
_NO_VALUE = regex(r"--[A-Za-z]|-[A-Za-z](?![^\s\"'])|[;|&]")
_ONLY_GOES_ON = regex(r"[ \t]*\\?\r?\Z")
_QUOTES = {
    '"': regex(r"(?:[^\"\\\n]+|\\[^\n]?)*"),
    "'": regex(r"[^'\n]*"),
    '\\"': regex(r"[^\"\n]*"),
    "\\'": regex(r"[^'\n]*"),
}
# user:"P W" goes on in its quotes; a quote before a blank or a comma closes what is around the word.
_BARE = regex(
    r"(?:[^\s\"'`]+|(?<=[:=%$])\"[^\"\n]*\"|(?<=[:=%$])'[^'\n]*'|(?<=[:=%$]\\)\"[^\"\n]*\"|[\"'`](?=[^\s\"'`,;)}\]]))*"
)


_OPENED = regex(r"\\?[\"']")


def mask_tools(text: str, command: Command | None = None) -> str:
    """`text` without what stands behind the flags of TOOLS. `command`: of the line before, which goes on in this."""
    if command is None and not names_tools(text):
        return text
    return _Scanner(text, command or Command()).masked()


class _Scanner:
    def __init__(self, text: str, command: Command) -> None:
        self._text, self._command = text, command
        self._out: list[str] = []
        self._done = 0  # what is before it was written
        self._doubt = False  # a quote came since the program's name: a ; may be part of a word

    def masked(self) -> str:
        position = 0
        if self._command.pending:
            self._command.pending = False
            found = _TO_FIRST.match(self._text)
            assert found is not None
            position = self._hide(self._command.behind, found.end(), found[1])
        while mark := _MARK.search(self._text, position):
            position = max(mark.end(), self._mark(mark))
        return "".join((*self._out, self._text[self._done :]))

    def _mark(self, mark: re.Match[str]) -> int:
        """Answers how far it read."""
        kind = mark.lastgroup
        if kind == "flag":
            return self._flag(mark.start())
        if kind == "name":
            self._doubt = self._doubt and bool(self._command.tools)
            self._command.name(mark[0])
        elif kind == "doubt":
            self._doubt = True
        elif kind == "line" or (kind == "next" and not self._doubt):
            self._command.begin()
            self._doubt = False
        return mark.end()

    def _flag(self, start: int) -> int:
        text, command = self._text, self._command
        found = command.flag(text, start)
        if found is None:
            return start
        tool, end = found
        flag = text[start:end]
        command.used(tool)
        if _ONLY_GOES_ON.match(text, end):
            command.pending, command.behind = not tool.attached, flag
            return end
        if apart := _TO_NEXT.match(text, end):
            unmasked = tool.attached or _NO_VALUE.match(text, apart.end())
            return end if unmasked else self._hide(flag, apart.end(), apart[1])
        return self._hide(flag, end + (text[end] == "="))

    def _hide(self, flag: str, start: int, quote: str = "") -> int:
        text = self._text
        if not quote and (opened := _OPENED.match(text, start)):
            quote, start = opened[0], opened.end()
        found = (_QUOTES[quote] if quote else _BARE).match(text, start)
        end = found.end() if found else start
        around = " \t\r\\" if quote else " \t\r,;)}]\"'`\\"
        while end > start and (last := text[end - 1]) in around:
            if last in "\"'" and text.count(last, start, end) % 2 == 0:
                break  # it was opened in the value
            end -= 1  # what closes belongs to what is around it
        if start < end and not self._command.stays(flag, text[start:end]):
            self._out += (text[self._done : start], MASK)
            self._done = end
        return end
