"""Command lines: lists of words, systemd's ExecStart, and the arg= lines of a process."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.masking.names import MASK, is_secret
from gpunode.masking.words import mask_words

_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_OTHER_FLAG = re.compile(r"--[A-Za-z]|-[A-Za-z]$")
# systemd before 255 joins words with blanks and does not quote them, so that a value may hold some.
_EXEC = re.compile(r"(argv\[\]=)([^\n]*?)( ; ignore_errors=|$)", re.MULTILINE)
_EXEC_LINE = re.compile(r"^([ \t]*Exec[A-Za-z]+[ \t]*=[ \t]*)([^{\n][^\n]*)", re.MULTILINE)
_ARG_RUNS = re.compile(r"(?:^arg=[^\n]*\n?)+", re.MULTILINE)


def mask_argv(words: Sequence[str], *, unquoted: bool = False) -> tuple[str, ...]:
    """As many words, those masked that say a secret or follow a flag of one.

    `unquoted`: they were parted at blanks, so that a secret may be several: all go, up to the next flag.
    """
    out: list[str] = []
    expects = False
    short = _short_flags(words)
    for word in words:
        if expects and not _OTHER_FLAG.match(word):
            out.append(MASK)
            expects = unquoted
            continue
        name = word.partition("=")[0] if unquoted else word
        expects = bool(_FLAG.fullmatch(name)) and (is_secret(name) or name in short)
        out.append(mask_words(word))
    return tuple(out)


def _short_flags(words: Sequence[str]) -> frozenset[str]:
    """k3s and rke2 write --token as -t, and k3s --agent-token has no short form (k3s server --help)."""
    first = {word.rpartition("/")[2] for word in words[:3]}
    return frozenset(("-t",)) if first & {"k3s", "rke2", "server", "agent"} else frozenset()


def mask_commands(text: str) -> str:
    """`text` with the command lines in it masked: ExecStart as `systemctl show` or a unit's file has it (behind a
    secret flag all words go, up to the next flag), and the arg= lines of a process:PID section of the wire.
    """
    if "argv[]=" in text:
        text = _EXEC.sub(lambda found: f"{found[1]}{_joined(found[2])}{found[3]}", text)
    if "Exec" in text:
        text = _EXEC_LINE.sub(lambda found: f"{found[1]}{_joined(found[2])}", text)
    return _ARG_RUNS.sub(_arg_lines, text) if "arg=" in text else text


def _joined(line: str) -> str:
    words = line.split(" ")
    short, out = _short_flags(words), list[str]()
    hiding = False
    for word in words:
        if hiding and not _OTHER_FLAG.match(word):
            if out[-1] != MASK:
                out.append(MASK)
            continue
        name, equals, _ = word.partition("=")
        hiding = bool(_FLAG.fullmatch(name)) and (is_secret(name) or name in short)
        if hiding and equals:
            out.append(f"{name}={MASK}")
        else:
            out.append(word)
    return " ".join(out)


def _arg_lines(found: re.Match[str]) -> str:
    lines = found[0].split("\n")
    words = mask_argv([line.removeprefix("arg=") for line in lines if line])
    return "\n".join([*(f"arg={word}" for word in words), *([""] if not lines[-1] else [])])
