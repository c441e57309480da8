"""TOML: tables, dotted and quoted keys, strings and arrays over many lines. Also the templates that k3s and microk8s
keep, whose lines of other sorts (`{{ if }}`) are masked as words."""

from __future__ import annotations

from gpunode.masking.flow import Flow
from gpunode.masking.names import holds_secrets
from gpunode.masking.words import mask_words
from gpunode.regex import regex

# One character a round: with + inside of * a quoted text that is no key would be tried in 2^n ways.
_PART = r"(?:\"(?:[^\"\\\n]|\\[^\n])*\"|'[^'\n]*'|[\w+-]+)"
_KEY = regex(rf"[ \t]*({_PART}(?:[ \t]*\.[ \t]*{_PART})*)[ \t]*=[ \t]*")
_TABLE = regex(r"[ \t]*\[\[?([^\n]*)")
_LINE = regex(r"[^\n]*\n?")


def mask_toml(text: str, *, depth: int = 0) -> tuple[str, bool]:
    """(masked text, whether every line was one of TOML's)."""
    flow = Flow(text, depth=depth)
    position, table_secret, odd = 0, False, False
    while position < len(text):
        line = _LINE.match(text, position)
        assert line is not None
        if key := _KEY.match(text, position):
            flow.out.append(key[0])
            position = flow.value(key.end(), secret=table_secret or holds_secrets(key[1]), ends="line")
            continue
        if table := _TABLE.match(text, position):
            table_secret = holds_secrets(table[1].partition("#")[0])
            flow.out.append(mask_words(line[0]) if "@" in line[0] else line[0])
        else:
            bare = line[0].strip()
            odd = odd or bool(bare and not bare.startswith(("#", "{{")))
            flow.out.append(mask_words(line[0]))
        position = line.end()
    return "".join(flow.out), not (odd or flow.broken)
