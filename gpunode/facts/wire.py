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

Payload lines carry a `|`, so no file can forge a header. Blank lines between sections mean nothing. What comes before
the first header is a login banner; what comes after `@end` is a farewell; both are skipped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gpunode.errors import TransportError
from gpunode.model.facts import FileFacts

VERSION = 1
HEADER = f"@gpunode-facts {VERSION}"
_ANY_HEADER = re.compile(r"@gpunode-facts (\S+)")
_COMMAND = re.compile(r"@ (?P<name>[^\s/]+) rc=(?P<rc>[0-9]{1,9})")
_UNREADABLE = re.compile(r"@ (?P<name>file:/.*?|[^\s/]+) unreadable (?P<why>.*)")
_ABSENT = re.compile(r"@ file:(?P<path>/.*) absent")
_FILE = re.compile(
    r"@ file:(?P<path>/.*?) bytes=(?P<bytes>[0-9]{1,15})(?: mode=(?P<mode>[0-7]{1,7}))?"
    r"(?: sha256=(?P<sha256>[0-9a-f]{64}))?(?: symlink=(?P<symlink>.*))?"
)


@dataclass(frozen=True)
class Section:
    """What one command or look printed. rc None: it was not run, and `unread` says why."""

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


def decode(stream: bytes) -> Sections:
    """The sections of a probe's answer.

    Raises TransportError when it does not start (no sh, or another version), is cut off, or holds foreign lines.
    """
    lines = stream.decode("utf-8", "surrogateescape").split("\n")
    commands: dict[str, Section] = {}
    files: dict[str, FileFacts] = {}
    for header, payload in _blocks(_body(lines, stream)):
        _place(header, payload, commands, files)
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


def _body(lines: list[str], stream: bytes) -> list[str]:
    """The lines between the header and @end."""
    start = next((i for i, line in enumerate(lines) if _ANY_HEADER.fullmatch(line.rstrip("\r"))), None)
    if start is None:
        shown = stream[:200].decode("utf-8", "replace").strip()
        raise TransportError(
            "the host did not answer the probe",
            evidence=f"it sent: {shown}" if shown else "it sent nothing",
            remedy="gpunode needs a POSIX sh at the other end; try: ssh HOST sh -s </dev/null",
        )
    if lines[start] != HEADER:
        raise TransportError(
            f"the probe's answer is not in the form this gpunode reads ({HEADER})",
            evidence=f"it begins with {lines[start]!r}",
            remedy="record it again with this gpunode; a terminal in between (ssh -t) also changes line ends",
        )
    if "@end" not in lines[start:]:
        last = next((line for line in reversed(lines) if line.startswith("@ ")), HEADER)
        raise TransportError(
            "the probe's answer was cut off",
            evidence=f"{len(stream)} bytes came, the last section begun is {last!r}, and @end is missing",
            remedy="try again; if it happens again, look at the connection and at free space in /run and /tmp",
        )
    return lines[start + 1 : lines.index("@end", start)]


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    header: str | None = None
    payload: list[str] = []
    for line in lines:
        if line.startswith("|") and header is not None:
            payload.append(line[1:])
        elif line.startswith("@ "):
            if header is not None:
                yield header, payload
            header, payload = line, []
        elif line:
            raise _garbled(line)
    if header is not None:
        yield header, payload


def _place(header: str, payload: list[str], commands: dict[str, Section], files: dict[str, FileFacts]) -> None:
    if match := _COMMAND.fullmatch(header):
        commands[match["name"]] = Section("".join(f"{line}\n" for line in payload), int(match["rc"]))
    elif match := _FILE.fullmatch(header):
        files[match["path"]] = _file(match, payload)
    elif match := _ABSENT.fullmatch(header):
        files[match["path"]] = FileFacts(match["path"])
    elif match := _UNREADABLE.fullmatch(header):
        if match["name"].startswith("file:"):
            path = match["name"].removeprefix("file:")
            files[path] = FileFacts(path, unread=match["why"])
        else:
            commands[match["name"]] = Section(rc=None, unread=match["why"])
    else:
        raise _garbled(header)


def _file(match: re.Match[str], payload: list[str]) -> FileFacts:
    """bytes= tells whether the last line had its newline; any other size means the file moved under the probe."""
    path, size = match["path"], int(match["bytes"])
    text = "\n".join(payload)
    length = len(text.encode("utf-8", "surrogateescape"))
    if payload and size == length + 1:
        text += "\n"
    elif size != length:
        return FileFacts(path, unread=f"changed while it was read ({size} bytes announced, {length} came)")
    mode = int(match["mode"], 8) if match["mode"] else None
    return FileFacts(path, text, match["sha256"] or _sha256(text), mode, match["symlink"])


def _file_lines(path: str, file: FileFacts) -> list[str]:
    if file.unread is not None:
        return [f"@ file:{path} unreadable {file.unread}"]
    if file.text is None:
        return [f"@ file:{path} absent"]
    head = f"@ file:{path} bytes={len(file.text.encode('utf-8', 'surrogateescape'))}"
    head += f" mode={file.mode:o}" if file.mode is not None else ""
    head += f" sha256={file.sha256}" if file.sha256 else ""
    head += f" symlink={file.symlink}" if file.symlink else ""
    return [head, *_payload(file.text)]


def _payload(text: str) -> list[str]:
    if not text:
        return []
    return [f"|{line}" for line in text.removesuffix("\n").split("\n")]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _garbled(line: str) -> TransportError:
    return TransportError(
        "the probe's answer holds a line that is not the probe's",
        evidence=f"{line[:120]!r}",
        remedy="something else writes to the connection (a login script, a terminal); record it again without it",
    )
