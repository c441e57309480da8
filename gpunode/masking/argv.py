"""Command lines: lists of words, systemd's ExecStart, and the arg= lines of a process."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.masking.names import MASK
from gpunode.masking.tools import Command
from gpunode.masking.words import mask_words
from gpunode.regex import regex

# systemd before 255 joins words with blanks and does not quote them, so that a value may hold some.
_EXEC = regex(r"(argv\[\]=)([^\n]*?)( ; ignore_errors=|$)", re.MULTILINE)
_EXEC_LINE = regex(r"^([ \t]*Exec[A-Za-z]+[ \t]*=[ \t]*)([^{\n](?:[^\n]*\\\r?\n)*[^\n]*)", re.MULTILINE)
_ARG_RUNS = regex(r"(?:^arg=[^\n]*\n?)+", re.MULTILINE)


def mask_argv(words: Sequence[str], *, unquoted: bool = False) -> tuple[str, ...]:
    """As many words, those masked that hold a secret or follow a flag of one.

    `unquoted`: they were parted at blanks, so that a secret may be several: all go, up to the next flag.
    """
    command, out = Command(), list[str]()
    for word in words:
        taken = command.take(word, unquoted=unquoted)
        out.append(mask_words(word) if taken is None else taken)
    return tuple(out)


def mask_commands(text: str) -> str:
    """`text` with the command lines in it masked: ExecStart as `systemctl show` or a unit's file has it (behind a
    secret flag all words go, up to the next flag), and the arg= lines of a process:PID section of the wire.
    """
    if "argv[]=" in text:
        text = _EXEC.sub(lambda found: f"{found[1]}{_joined(found[2], Command())}{found[3]}", text)
    if "Exec" in text:
        text = _EXEC_LINE.sub(lambda found: found[1] + _unit_line(found[2]), text)
    return _ARG_RUNS.sub(_arg_lines, text) if "arg=" in text else text


def _unit_line(line: str) -> str:
    """Of a unit's file, whose quotes are there; it may go on over lines."""
    command = Command({})
    return mask_words("\n".join(_joined(part, command) for part in line.split("\n")))


def _joined(line: str, command: Command) -> str:
    out: list[str] = []
    for word in line.split(" "):
        if word in ("", "\\", "\\\r"):
            out.append(word)
            continue
        taken = command.take(word, unquoted=True)
        if taken is None:
            name, equals, _ = word.partition("=")
            out.append(f"{name}={MASK}" if command.pending and equals else word)
        elif taken != MASK or out[-1:] != [MASK]:
            out.append(taken)
    return " ".join(out)


def _arg_lines(found: re.Match[str]) -> str:
    lines = found[0].split("\n")
    words = mask_argv([line.removeprefix("arg=") for line in lines if line])
    return "\n".join([*(f"arg={word}" for word in words), *([""] if not lines[-1] else [])])
