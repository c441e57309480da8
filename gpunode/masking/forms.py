"""Which form a text has, and the one function that masks it.

Start-up counts, and most of what is shown is lines: the other forms are loaded when a text has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gpunode.masking.argv import mask_commands
from gpunode.masking.words import mask_pem, mask_words
from gpunode.regex import regex

_BY_END = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".toml": "toml",
    ".tmpl": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}
# The head of a table, or a value that goes on over lines.
_TABLE = regex(
    r"^[ \t]{0,20}\[\[?[\w\"'][^\n=]{0,200}\]\]?[ \t]{0,20}(?:#[^\n]*)?$"
    r"|^[\w.-]{1,60}[ \t]{0,20}=[ \t]{0,20}(?:\"\"\"|'\'\'|\[[ \t]{0,20}$)",
    re.MULTILINE,
)
# A unit of systemd: lines that go on look like keys to TOML.
_UNIT = regex(r"^\[(?:Unit|Service|Socket|Timer|Mount|Install)\][ \t]*\r?$", re.MULTILINE)
_MAPPING = regex(r"(?:#[^\n]*\n|---[ \t]*\n|[ \t]*\n)*[\w.\"'-]+:(?:[ \t][^\n]*)?\n")
# TOML without saying so in their names.
_TOML_DIRECTORIES = ("/crio/", "/containers/containers.conf", "/containers/registries.conf", "/containers/storage.conf")


def form_of(path: str) -> str:
    """The form of the file at `path`: a key of FORMS; "" where the text itself decides."""
    if any(directory in path for directory in _TOML_DIRECTORIES):
        return "toml"
    name = path.rpartition("/")[2]
    return next((form for end, form in _BY_END.items() if name.endswith(end)), "")


def masked(text: str, form: str = "", *, depth: int = 0) -> str:
    """`text` with MASKED in place of what must not leave its host, linear in its length; masked twice is masked once.

    It keeps its lines and, where it parsed, still parses. A text that is not whole in its form is masked as words as
    well, which hides more, never less.
    """
    if "PRIVATE KEY" in text:
        text = mask_pem(text)
    form = form or _looks_like(text)
    if form in ("toml", "yaml") and text.lstrip().startswith(("{", "[{")):
        form = "json"
    return FORMS[form](mask_commands(text), depth)


def _looks_like(text: str) -> str:
    start = text[:4096].lstrip()
    if start.startswith(("{", "[{")):
        return "json"
    if _TABLE.search(start):
        unit = _UNIT.search(start) and '"""' not in text and "'''" not in text
        return "lines" if unit else "toml"
    return "yaml" if _MAPPING.match(start) else "lines"


def _json(text: str, depth: int) -> str:
    from gpunode.masking.flow import mask_json

    out, whole = mask_json(text, depth=depth)
    return out if whole and text.lstrip()[:1] in ("{", "[", "") else mask_words(out)


def _toml(text: str, depth: int) -> str:
    from gpunode.masking.toml import mask_toml

    out, whole = mask_toml(text, depth=depth)
    return out if whole else mask_words(out)


def _jsonl(text: str, depth: int) -> str:
    from gpunode.masking.flow import mask_json

    lines = [mask_json(line, depth=depth) for line in text.split("\n")]
    out = "\n".join(line for line, _ in lines)
    odd = any(not whole or line.lstrip()[:1] not in ("{", "") for line, whole in lines)
    return mask_words(out) if odd else out


def _yaml(text: str, depth: int) -> str:
    from gpunode.masking.yaml import mask_yaml

    out, whole = mask_yaml(text, depth=depth)
    return out if whole else mask_words(out)


def _lines(text: str, depth: int) -> str:
    return mask_words(text)


FORMS: dict[str, Callable[[str, int], str]] = {
    "json": _json,
    "jsonl": _jsonl,
    "toml": _toml,
    "yaml": _yaml,
    "lines": _lines,
}
