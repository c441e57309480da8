"""Manual pages: gpunode(1), and one for each verb, in the macros of man(7)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from gpunode_release.command_line import OWN, Option, Verb, command_line

_CODE_ROW = re.compile(r"^\| (\d+) \| [A-Z_]+ \| (.+) \|$", re.M)


@dataclass(frozen=True)
class Edition:
    """What stands in a page's margins, and the table of exit codes."""

    version: str
    date_s: int  # since the epoch
    codes: tuple[tuple[str, str], ...]  # ("0", "done, or nothing to do; ...")


def exit_codes(page: Path) -> tuple[tuple[str, str], ...]:
    """The table of docs/reference/exit-codes.md, as plain text. Raises ValueError where there is none."""
    codes = tuple((code, text.replace("`", "")) for code, text in _CODE_ROW.findall(page.read_text(encoding="utf-8")))
    if not codes:
        raise ValueError(f"{page}: no table of exit codes")
    return codes


def man_pages(edition: Edition) -> dict[str, str]:
    """File name to text: "gpunode-check.1"."""
    verbs = tuple(command_line().all())
    return {f"{verb.name}.1": "\n".join(_page(verb, edition, verbs)) + "\n" for verb in verbs}


def _page(verb: Verb, edition: Edition, verbs: tuple[Verb, ...]) -> Iterator[str]:
    day = time.strftime("%Y-%m-%d", time.gmtime(edition.date_s))
    yield f'.TH {verb.name.upper()} 1 "{day}" "gpunode {edition.version}" "User Commands"'
    yield ".SH NAME"
    yield f"{_text(verb.name)} \\- {_text(_purpose(verb))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(' '.join(('gpunode', *verb.path)))}"
    yield _text(verb.usage)
    yield ".SH DESCRIPTION"
    yield _text(verb.help)
    if verb.verbs:
        yield ".SH COMMANDS"
        for below in verb.verbs:
            yield from _item(f"\\fB{_text(' '.join(below.path[-1:]))}\\fR", below.help)
    yield from _options(verb.options)
    if verb.examples:
        yield ".SH EXAMPLES"
        yield from _examples(verb.examples)
    yield from _ends(verb, edition)
    yield ".SH SEE ALSO"
    names = _see_also(verb, verbs)
    yield from (f".BR {_text(name)} (1){',' if name != names[-1] else ''}" for name in names)


def _ends(verb: Verb, edition: Edition) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    if verb.path:
        yield "As in\n.BR gpunode (1)."
        return
    for code, meaning in edition.codes:
        yield from _item(f"\\fB{code}\\fR", meaning)


def _options(options: tuple[Option, ...]) -> Iterator[str]:
    yield ".SH OPTIONS"
    headings = list(dict.fromkeys((OWN, *(option.heading for option in options))))
    for heading, group in groupby(sorted(options, key=lambda o: headings.index(o.heading)), lambda o: o.heading):
        if heading != OWN:
            yield f".SS {_text(heading)}"
        for option in group:
            flags = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in option.flags)
            yield from _item(f"{flags} \\fI{_text(option.value)}\\fR" if option.value else flags, option.help)


def _examples(lines: tuple[str, ...]) -> Iterator[str]:
    yield ".EX"
    yield from (_text(line) for line in lines)
    yield ".EE"


def _item(term: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield term
    yield _text(text)


def _purpose(verb: Verb) -> str:
    """The first sentence, as whatis(1) shows it: no capital, no dot."""
    sentence = re.split(r"[.:] ", verb.help, maxsplit=1)[0].rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def _see_also(verb: Verb, verbs: tuple[Verb, ...]) -> list[str]:
    """gpunode, what is above and what is right below; whatever verb it is, one page at least."""
    above = [other.name for other in verbs if other.path == verb.path[: len(other.path)] and other != verb]
    return [*above, *(below.name for below in verb.verbs)]


def _text(text: str) -> str:
    """`text` as roff prints it as it is: a hyphen stays one that can be pasted, and no line is a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = escaped.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
