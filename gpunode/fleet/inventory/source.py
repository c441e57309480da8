"""The text of an inventory: a file, a pipe or standard input, of a bounded size."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from gpunode.errors import UsageError
from gpunode.foreign import BOM, LARGEST, read_file

STDIN = "-"


def text_of(path: Path, flag: str) -> str:
    """What the file says; `flag` is how its name was typed: "--inventory ", "--ssh @".

    Raises UsageError for what cannot be read, is over the limit, a program, or not UTF-8.
    """
    name = f"{flag}{path}"
    raw = _stdin(name) if str(path) == STDIN else _file(path, name)
    if len(raw) > LARGEST:
        raise UsageError(
            f"{name} is over {LARGEST >> 20} MiB",
            remedy="of kubectl, -o name is enough",
        )
    if raw.startswith(b"#!"):
        raise UsageError(
            f"{name} is a program",
            evidence="its first line is #!, and gpunode runs no inventory",
            remedy=f"run it, and pipe in what it prints, with {flag}-",
        )
    if raw.startswith(b"$ANSIBLE_VAULT"):
        raise UsageError(
            f"{name} is encrypted by ansible-vault",
            evidence="gpunode asks for no vault's password",
            remedy=f"pipe in what ansible-vault view prints, with {flag}-",
        )
    try:
        return raw.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name} is not UTF-8", evidence=f"line {line}", remedy="name a text file") from error


def _stdin(name: str) -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            f"{name} reads standard input, which is a terminal or closed",
            remedy="pipe a list in, such as kubectl get nodes -o name prints",
        )
    try:
        return sys.stdin.buffer.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{name}: standard input cannot be read", evidence=error.strerror or str(error)) from error


def _file(path: Path, name: str) -> bytes:
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            raise UsageError(
                f"{name} is a directory",
                evidence="one file is read",
                remedy=f"ansible-inventory -i {path} --list --yaml prints what is in all of its files",
            )
        return read_file(path, LARGEST)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name} cannot be read", evidence=why, remedy="name a file that can be read") from error
