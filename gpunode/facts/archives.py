"""Which parts of a Debian archive this host draws on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gpunode.model.packages import AptArchive

# sources.list(5); of these apt refuses other values for one index (apt-pkg/deb/debmetaindex.cc).
SAME_FOR_ALL = (
    "check-date", "check-valid-until", "date-max-future", "snapshot", "trusted", "valid-until-max", "valid-until-min"
)  # fmt: skip


def parse_archives(text: str) -> tuple[AptArchive, ...]:
    """The live entries of apt's lists, as `apt_archives` shows them: lines of .list files, stanzas of .sources files.

    deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian bookworm main

    Types: deb
    URIs: http://mirror.example/debian
    Suites: bookworm bookworm-updates
    Components: main
    Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
    """
    found: list[AptArchive] = []
    for part in re.split(r"\n[ \t]*\n", text):
        if re.search(r"(?im)^URIs:", part):
            found += _stanza(part)
        else:
            found += (entry for line in part.splitlines() if (entry := _line(line)))
    return tuple(found)


def _line(line: str) -> AptArchive | None:
    match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)((?:\s+[^\s#]+)*)", line)
    if match is None:
        return None
    words = dict(word.partition("=")[::2] for word in (match[1] or "").split())
    components, key = tuple(match[4].split()), words.get("signed-by") or None
    return AptArchive(match[2], match[3], components, key, options=_options(words))


def _options(fields: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, fields[name]) for name in SAME_FOR_ALL if fields.get(name))


def _stanza(text: str) -> Iterator[AptArchive]:
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and not line.startswith((" ", "\t", "#")):
            fields[name.strip().lower()] = value.strip()
    off = fields.get("enabled", "yes").lower() in ("no", "false", "0")
    if off or "deb" not in fields.get("types", "").split():
        return
    components, key = tuple(fields.get("components", "").split()), fields.get("signed-by")
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield AptArchive(uri, suite, components, key or None, inline_key=key == "", options=_options(fields))
