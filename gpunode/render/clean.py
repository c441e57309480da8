"""The one cleaner: what others wrote (hosts, files, users) without what a terminal would obey or show otherwise.

C0, C1 and DEL move the cursor, set titles and worse; bidi controls make a word read as another (Trojan Source,
CVE-2021-42574); U+2028 and U+2029 begin lines where none was meant; a lone surrogate is a byte that is not UTF-8.
"""

from __future__ import annotations

import re

from gpunode.regex import regex

_OBEYED = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_TEXT = regex(f"[{_OBEYED}]")
_LINE = regex(f"[{_OBEYED}\n\t]")
_SEEN = bytes((*range(0x20, 0x7F), 0x09, 0x0A))
_SHORT = {"\n": "\\n", "\t": "\\t"}


def clean(text: str) -> str:
    """Text of several lines: newline and tab are kept, all else that is obeyed is shown: \\x1b, \\u202e."""
    if _plain(text):
        return text
    return _TEXT.sub(_shown, text.replace("\r\n", "\n"))


def clean_line(text: str) -> str:
    """Text that is one line of gpunode's: its line ends are shown as well, so that it cannot begin another."""
    return _LINE.sub(_shown, text)


def clean_json(text: str) -> str:
    """The same characters as JSON escapes: the document's value does not change."""
    return text if _plain(text) else _TEXT.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def _plain(text: str) -> bool:
    """Whether nothing but ASCII that can be seen, blanks, tabs and newlines is in it: told ten times as fast."""
    return text.isascii() and not text.encode("ascii").translate(None, _SEEN)


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _SHORT.get(match.group()) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
