"""One entry of a package manager's lists: a line of a .list, a stanza of a .sources, a section of a .repo."""

from __future__ import annotations

import configparser
import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice, product

from gpunode.regex import regex
from gpunode.values import dataclass

_LINE = regex(r"\s*(deb(?:-src)?)\s+(?:\[([^\]]*)\]\s*)?([^\s#]+)\s+([^\s#]+)")
MOST = 1000  # addresses of one entry that are read


@dataclass(frozen=True)
class Entry:
    """Its content, whoever wrote it; variables are not filled in."""

    kinds: tuple[str, ...]  # "deb", "deb-src" or "rpm"
    addresses: tuple[str, ...]  # apt: each URI with its flat suite joined to it
    options: Mapping[str, str]  # apt: names in lower case
    flat: bool = True  # apt: no suite but directories
    doubled: tuple[str, ...] = ()  # options that are named more than once: which one counts is the manager's secret
    name: str = ""  # of a .repo file's section


def read_entry(path: str, text: str) -> Entry | None:
    """`text` as the manager would read it from the file `path`; None when it names no repository, or is switched off.

    apt: sources.list(5). dnf, yum, tdnf, zypper: one INI section, whose keys count in lower case only.
    """
    if path.endswith(".list"):
        return _line(text)
    return _stanza(text) if path.endswith(".sources") else _section(text)


def _line(text: str) -> Entry | None:
    match = _LINE.match(text)
    if match is None:
        return None
    pairs = [_pair(word) for word in (match[2] or "").split()]
    return Entry(
        (match[1],), (_joined(match[3], match[4]),), dict(pairs), match[4].endswith("/"), _twice([n for n, _ in pairs])
    )


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.lower(), value


def _stanza(text: str) -> Entry | None:
    fields: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if line.startswith((" ", "\t")) and fields:
            fields[-1][1].append(line.strip())
        else:
            name, _, value = line.partition(":")
            fields.append((name.strip().lower(), [value.strip()]))
    options = {name: "\n".join(lines) for name, lines in fields}
    # apt's StringToBool: these words alone are "no".
    off = options.pop("enabled", "yes").lower() in ("no", "false", "without", "off", "disable", "0")
    uris, suites = options.pop("uris", "").split(), options.pop("suites", "").split()
    if off or not uris:
        return None
    return Entry(
        tuple(options.pop("types", "").split()),
        tuple(_joined(uri, suite) for uri, suite in islice(product(uris, suites or [""]), MOST)),
        {name: value for name, value in options.items() if name},
        all(suite.endswith("/") for suite in suites),
        _twice([name for name, _ in fields]),
    )


def _section(text: str) -> Entry | None:
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=("#", ";"), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # configparser's own way to keep the case
    try:
        parser.read_string(text)
    except configparser.Error:
        return Entry(("rpm",), tuple(re.findall(r"\w+://\S+", text)), {}, doubled=("lines that cannot be read",))
    if not parser.sections():
        return None
    name = parser.sections()[0]
    options = dict(parser.items(name))
    if options.get("enabled", "1").strip().lower() in ("0", "no", "false", "off"):
        return None
    named = [line.partition("=")[0].strip() for line in text.splitlines() if "=" in line and not line[:1].isspace()]
    where = f"{options.get('baseurl', '')} {options.get('mirrorlist', '')} {options.get('metalink', '')}"
    addresses = tuple(where.replace(",", " ").split())
    return Entry(("rpm",), addresses, options, doubled=_twice([n for n in named if n[:1] not in "#;"]), name=name)


def _joined(uri: str, suite: str) -> str:
    """apt looks for a flat repository's index in the directory `suite` below the address."""
    return f"{uri.rstrip('/')}/{suite.lstrip('/')}" if suite.endswith("/") else uri


def _twice(names: list[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name, times in Counter(names).items() if name and times > 1))
