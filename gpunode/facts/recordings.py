"""Recordings: a probe's stream in a file, without what should not leave the host."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from gpunode.errors import TransportError, UsageError
from gpunode.facts.wire import STREAM_LIMIT_BYTES, Section, Sections, decode, encode
from gpunode.foreign import read_file
from gpunode.masking import form_of
from gpunode.masking import masked as secrets_masked
from gpunode.model.files import FileFacts
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, gpunode

_UUID = regex(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_MACHINE_ID = regex(r"\b[0-9a-f]{32}\b")
_MAC = regex(r"(?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b")
_DOCKER_ID = regex(r"\b(?:[A-Z2-7]{4}:){11}[A-Z2-7]{4}\b")
_SERIAL = regex(r"(<(?:serial|board_serial|board_part_number|chassis_serial_number|host_id)>)[^<]*(?=<)")
# Names that are not names: replacing them would rewrite half the stream.
_NO_NAMES = ("", "-", "localhost", "host", "debian", "ubuntu", "linux", "nvidia", "docker", "root")

Edit = Callable[[str], str]


def load_recording(path: Path) -> bytes:
    """The stream in a file, or in a directory's facts.txt. Raises UsageError when there is none, or it is not whole."""
    target = path / "facts.txt" if path.is_dir() else path
    try:
        stream = read_file(target, STREAM_LIMIT_BYTES)
    except OSError as fault:
        raise UsageError(
            f"{path} is not a recorded host",
            evidence=str(fault),
            remedy=Remedy(
                RepairAction.NONE,
                "name a directory that holds facts.txt, or a file that ",
                gpunode("detect", "--record", ssh=False),
                " wrote",
            ),
        ) from fault
    try:
        decode(stream)
    except TransportError as fault:
        raise UsageError(
            f"{target} is not a whole recording: {fault.problem}",
            evidence=fault.evidence,
            remedy=Remedy(RepairAction.NONE, "record the host again: ", gpunode("detect", "--record", "FILE")),
        ) from fault
    return stream


def section_text(stream: bytes, name: str) -> str:
    """One section of a stream, without secrets; "" where it was not read."""
    return secrets_masked(decode(stream).text(name), _form(name))


def masked(stream: bytes, *, mask_host: bool) -> bytes:
    """The same stream without registry passwords, tokens and proxy credentials; its hashes fit its masked files."""
    sections = decode(stream)
    hide: Edit = _host_masker(sections) if mask_host else str
    commands = {name: _edited(section, _form(name), hide) for name, section in sections.commands.items()}
    files = {path: _edited_file(file, hide) for path, file in sections.files.items()}
    return encode(Sections(commands, files))


def mask_secrets(text: str) -> str:
    """What a tool or the kernel printed, without secrets; its form is found from the text itself."""
    return secrets_masked(text)


def _form(section: str) -> str:
    """The form of a section of the wire; "" for what tools print."""
    return "toml" if section == "crio:config" or section.endswith(":dump") else "jsonl" if section == "journal" else ""


def _host_masker(sections: Sections) -> Edit:
    """UUIDs become numbers in the order they appear, so that what belonged together still does."""
    seen: dict[str, int] = {}

    def uuid(match: re.Match[str]) -> str:
        number = seen.setdefault(match[0].lower(), len(seen) + 1)
        return f"00000000-0000-0000-0000-{number:012d}"

    found = re.search(r"^hostname=(.*)$", sections.text("identity"), re.MULTILINE)
    name = found[1].strip() if found else ""
    named = None if name in _NO_NAMES else re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")

    def edit(text: str) -> str:
        text = _MAC.sub("00:00:00:00:00:00", _SERIAL.sub(r"\g<1>0", _UUID.sub(uuid, text)))
        text = _DOCKER_ID.sub(":".join(["AAAA"] * 12), _MACHINE_ID.sub("0" * 32, text))
        return named.sub("host", text) if named else text

    return edit


def _edited(section: Section, form: str, hide: Edit) -> Section:
    unread = mask_secrets(section.unread) if section.unread else section.unread
    return dataclasses.replace(section, text=hide(secrets_masked(section.text, form)), unread=unread)


def _edited_file(file: FileFacts, hide: Edit) -> FileFacts:
    """The file with its masked text, and the hash of that text: of the true one, short secrets could be guessed."""
    if file.text is None:
        return file
    text = hide(secrets_masked(file.text, form_of(file.path)))
    if text == file.text:
        return file
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return dataclasses.replace(file, text=text, sha256=digest)
