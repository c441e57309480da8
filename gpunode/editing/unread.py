"""A file that is there and cannot be read is nothing to edit."""

from __future__ import annotations

from gpunode.advice import named
from gpunode.errors import ConfigFileError

NOT_A_FILE = ("not a regular file", "it is a directory")
NO_TARGET = "which is missing"


def refuse_unread(path: str, unread: str | None) -> None:
    """Raises ConfigFileError for a file that is there and could not be read: nobody can merge into it."""
    if unread is not None:
        raise refusal(path, unread)


def refusal(path: str, unread: str) -> ConfigFileError:
    """Why nothing is written there, and what to do about it."""
    return ConfigFileError(
        f"{path} cannot be read: {unread}",
        evidence="the file was not touched",
        remedy=_unread_remedy(path, unread),
    )


def is_no_file(unread: str) -> bool:
    """Whether nobody can read it, the engine included: a pipe, a directory, a link that leads nowhere."""
    return unread in NOT_A_FILE or NO_TARGET in unread


def _unread_remedy(path: str, why: str) -> str:
    if "denied" in why:
        return "run gpunode as root (sudo)"
    if NO_TARGET in why:
        return f"let its owner remove the link {named(path)}, or lead it to a file that is there; run gpunode again"
    if why == "it is a directory":
        return f"name the file in {named(path)}, or move the directory away, and run gpunode again"
    return f"make {named(path)} a regular file with the engine's settings, or move it away, and run gpunode again"
