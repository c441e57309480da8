"""The probe's answer as text, and back: sections of command output and whole files (docs/reference/wire-format.md).

    @gpunode-facts 1
    @ os rc=0
    |PRETTY_NAME="Ubuntu 24.04 LTS"
    @ rpm rc=127
    @ smi unreadable the nvidia module is not loaded
    @ file:/etc/docker/daemon.json bytes=8 mode=644 sha256=e3b0...
    |{"a": 1}
    @ file:/etc/containerd/config.toml absent
    @end

Payload lines carry a `|`, and blanks and backslashes in a path are escaped as in /proc/mounts (`\\040`, `\\134`), so
no file and no name can forge a header. Blank lines between sections mean nothing. What comes before
the first header is a login banner; what comes after `@end` is a farewell; both are skipped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import NamedTuple

from gpunode.errors import TransportError
from gpunode.facts.seen_again import SeenAgain
from gpunode.model.files import FileFacts
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, gpunode
from gpunode.values import dataclass

VERSION = 1
HEADER = f"@gpunode-facts {VERSION}"
STREAM_LIMIT_BYTES = 4 * 1024 * 1024  # a hundred times the largest of a real host
# Of all commands together, fifty times a real host's: their parsers make up to 25 bytes of one (a set of short words).
COMMANDS_LIMIT_BYTES = 2 * 1024 * 1024
# Of one file, eight times what the probe sends: while a text is made it takes up to ten bytes for one.
FILE_LIMIT_BYTES = 1024 * 1024
SECTION_LIMIT = 20_000  # files and commands; a real host has 60
HEADER_LIMIT_BYTES = 16 * 1024  # two paths of PATH_MAX, escaped
_ANY_HEADER = regex(rb"^@gpunode-facts \S+\r?$", re.MULTILINE)
_END = regex(rb"^@end$", re.MULTILINE)
_MARK = b"\n@ "
_FOREIGN = regex(rb"^[^|\n].*", re.MULTILINE)
_COMMAND = regex(r"@ (?P<name>[^\s/]+) rc=(?P<rc>[0-9]{1,9})")
_UNREADABLE = regex(r"@ (?P<name>file:/.*?|[^\s/]+) unreadable (?P<why>.*)")
_ABSENT = regex(r"@ file:(?P<path>/.*) absent")
_FILE = regex(
    r"@ file:(?P<path>/.*?) bytes=(?P<bytes>[0-9]{1,15})(?: mode=(?P<mode>[0-7]{1,7}))?"
    r"(?: mtime=(?P<mtime>[0-9]{1,12}))?(?: sha256=(?P<sha256>[0-9a-f]{64}))?(?: symlink=(?P<symlink>.*))?"
)


@dataclass(frozen=True)
class Section:
    """What one command or query printed. rc None: it was not run, and `unread` says why."""

    text: str = ""  # lines, each ended by a newline; UTF-8 with surrogateescape
    rc: int | None = 0  # 127: the tool is not there; 124: it did not answer within its limit
    unread: str | None = None


@dataclass(frozen=True)
class Sections:
    commands: Mapping[str, Section] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, FileFacts] = field(default_factory=lambda: MappingProxyType({}))

    def text(self, name: str) -> str:
        """A section's text; "" when it is missing, failed or was not run."""
        section = self.commands.get(name)
        return section.text if section is not None and section.rc == 0 else ""


class _Part(NamedTuple):
    """One section, by the name of its command or the path of its file."""

    name: str
    value: Section | FileFacts
    size_bytes: int = 0  # of a command's payload


# Hosts of a fleet have most of their sections alike, to the byte, and a host has them when it is asked again.
_ALIKE: SeenAgain[bytes, _Part] = SeenAgain(limit_bytes=4 * 1024 * 1024)


def decode(stream: bytes) -> Sections:
    """The sections of a probe's answer.

    Raises TransportError when it does not start (no sh, or another version), is truncated, holds foreign lines, or is
    larger than any host's answer. Works on the bytes as they came: a list of lines would take fifty times their size.
    """
    commands: dict[str, Section] = {}
    files: dict[str, FileFacts] = {}
    in_commands = 0
    for number, block in enumerate(_blocks(stream, *_body(stream)), 1):
        if number > SECTION_LIMIT:
            raise oversized(f"more than {SECTION_LIMIT} sections")
        if (part := _ALIKE.get(block)) is None:
            part = _part(block)
            _ALIKE.put(block, part, len(block))
        if isinstance(part.value, Section):
            in_commands += part.size_bytes
            commands[part.name] = part.value
        else:
            files[part.name] = part.value
        if in_commands > COMMANDS_LIMIT_BYTES:
            raise oversized(f"more than {COMMANDS_LIMIT_BYTES >> 20} MiB in commands")
    return Sections(MappingProxyType(commands), MappingProxyType(files))


def encode(sections: Sections) -> bytes:
    """The stream a probe would have sent. decode(encode(s)) == s for texts whose sections end in a newline."""
    lines = [HEADER]
    for name, section in sections.commands.items():
        if section.rc is None:
            lines.append(f"@ {name} unreadable {section.unread or 'not run'}")
            continue
        lines.append(f"@ {name} rc={section.rc}")
        lines += _payload(section.text)
    for path, file in sections.files.items():
        lines += _file_lines(path, file)
    return "\n".join([*lines, "@end", ""]).encode("utf-8", "surrogateescape")


def file_facts(path: str, text: str, *, mode: int | None = 0o644, symlink: str | None = None) -> FileFacts:
    """A readable file with its hash computed, for those who write recordings."""
    return FileFacts(path, text, _sha256(text), mode, symlink)


def _body(stream: bytes) -> tuple[int, int]:
    """Where the lines between the header and @end begin and end."""
    if len(stream) > STREAM_LIMIT_BYTES:
        raise oversized(f"{len(stream)} bytes")
    start = _ANY_HEADER.search(stream)
    if start is None:
        shown = stream[:200].decode("utf-8", "replace").strip()
        raise TransportError(
            "the host did not answer the probe",
            evidence=f"it sent: {shown}" if shown else "it sent nothing",
            remedy="gpunode needs a POSIX sh at the other end; try: ssh HOST sh -s </dev/null",
        )
    if start[0] != HEADER.encode():
        raise TransportError(
            f"the probe's answer is not in the form this gpunode reads ({HEADER})",
            evidence=f"it begins with {_shown(start[0])!r}",
            remedy="record it again with this gpunode; a terminal in between (ssh -t) also changes line ends",
        )
    end = _END.search(stream, start.end())
    if end is None:
        last = stream.rfind(b"\n@ ", start.start())
        shown = _shown(stream[last + 1 :].partition(b"\n")[0]) if last >= 0 else HEADER
        raise TransportError(
            "the probe's answer is truncated",
            evidence=f"{len(stream)} bytes came, the last section begun is {shown!r}, and @end is missing",
            remedy="try again; if it happens again, check the connection and free space in /run and /tmp",
        )
    return start.end(), end.start()


def _blocks(stream: bytes, start: int, end: int) -> Iterator[bytes]:
    """Each section, from its name to its last newline, one at a time: no payload's line begins as a header does."""
    at = stream.find(_MARK, start, end)
    if early := stream[start : end if at < 0 else at].strip(b"\n"):
        raise _garbled(_shown(early.partition(b"\n")[0]))
    while at >= 0:
        after = stream.find(_MARK, at + 1, end)
        yield stream[at + len(_MARK) : end if after < 0 else after + 1]
        at = after


def _part(block: bytes) -> _Part:
    """What one section holds. It depends on nothing but these bytes, and cannot be changed: see _ALIKE."""
    begin = block.index(b"\n")
    if foreign := _FOREIGN.search(block, begin + 1):
        raise _garbled(_shown(foreign[0]))
    if len(_MARK) - 1 + begin > HEADER_LIMIT_BYTES:
        raise _garbled(_shown(_MARK[1:] + block))
    header = "@ " + block[:begin].decode("utf-8", "surrogateescape")
    return _placed(header, _unmarked(block[begin:]))


def _unmarked(block: bytes) -> bytes:
    while b"\n\n" in block:  # blank lines mean nothing
        block = block.replace(b"\n\n", b"\n")
    return block.replace(b"\n|", b"\n")[1:]


def _placed(header: str, payload: bytes) -> _Part:
    if match := _COMMAND.fullmatch(header):
        return _Part(match["name"], Section(_text(payload), int(match["rc"])), len(payload))
    if match := _FILE.fullmatch(header):
        path = _path(match["path"])
        return _Part(path, _file(path, match, payload))
    if match := _ABSENT.fullmatch(header):
        path = _path(match["path"])
        return _Part(path, FileFacts(path))
    if match := _UNREADABLE.fullmatch(header):
        if match["name"].startswith("file:"):
            path = _path(match["name"].removeprefix("file:"))
            return _Part(path, FileFacts(path, unread=match["why"]))
        return _Part(match["name"], Section(rc=None, unread=match["why"]), len(payload))
    raise _garbled(header)


def _file(path: str, match: re.Match[str], payload: bytes) -> FileFacts:
    """bytes= shows whether the last line had its newline; any other size means the file moved under the probe."""
    size = int(match["bytes"])
    if size != len(payload):
        payload = payload[:-1]
    if size != len(payload):
        return FileFacts(path, unread=f"changed while it was read ({size} bytes announced, {len(payload)} came)")
    if size > FILE_LIMIT_BYTES:
        return FileFacts(path, unread=f"over {FILE_LIMIT_BYTES} bytes")
    mode = int(match["mode"], 8) if match["mode"] else None
    sha256 = match["sha256"] or hashlib.sha256(payload).hexdigest()
    symlink = _path(match["symlink"]) if match["symlink"] else None
    written_at = int(match["mtime"]) if match["mtime"] else None
    return FileFacts(path, _text(payload), sha256, mode, symlink, written_at=written_at)


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", "surrogateescape")


def _file_lines(path: str, file: FileFacts) -> list[str]:
    name = _escaped(path)
    if file.unread is not None:
        return [f"@ file:{name} unreadable {file.unread}"]
    if file.text is None:
        return [f"@ file:{name} absent"]
    head = f"@ file:{name} bytes={len(file.text.encode('utf-8', 'surrogateescape'))}"
    head += f" mode={file.mode:o}" if file.mode is not None else ""
    head += f" mtime={file.written_at}" if file.written_at is not None else ""
    head += f" sha256={file.sha256}" if file.sha256 else ""
    head += f" symlink={_escaped(file.symlink)}" if file.symlink else ""
    return [head, *_payload(file.text)]


def _escaped(path: str) -> str:
    return re.sub(r"[\x00-\x20\\\x7f]", lambda found: f"\\{ord(found[0]):03o}", path)


def _path(written: str) -> str:
    """As it is on the host. Older recordings were not escaped: a backslash without its three digits is kept."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found[1], 8)), written)


def _payload(text: str) -> list[str]:
    if not text:
        return []
    return [f"|{line}" for line in text.removesuffix("\n").split("\n")]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _shown(line: bytes) -> str:
    return line[:120].decode("utf-8", "surrogateescape")


def _garbled(line: str) -> TransportError:
    return TransportError(
        "the probe's answer holds a line that is not the probe's",
        evidence=f"{line[:120]!r}",
        remedy="something else writes to the connection (a login script, a terminal); record it again without it",
    )


def oversized(what: str) -> TransportError:
    return TransportError(
        "the probe's answer is larger than any host's",
        evidence=f"it holds {what}",
        remedy=Remedy(
            RepairAction.NONE,
            "check on the host what fills it: ",
            gpunode("detect", "--record", ssh=False),
            " there, and its largest sections",
        ),
    )
