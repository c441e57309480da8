"""How one host is reached, as an inventory may say it, and the form of each setting."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpunode.errors import UsageError
from gpunode.fleet.inventory.words import bracketed
from gpunode.foreign import whole_number
from gpunode.transport.ssh_config import parse_target

NO_JUMP = "none"


def _address(text: str) -> str:
    found = parse_target(bracketed(text))
    if found.user or found.port:
        raise UsageError(f"{text[:80]!r} is more than an address", evidence="user and port are settings of their own")
    return found.host


def _user(text: str) -> str:
    if re.fullmatch(r"[^\s,:\x00-\x20\x7f-][^\s,\x00-\x20\x7f]{0,127}", text) and text.isprintable():
        return text
    raise UsageError(f"{text[:80]!r} is not a user")


def _port(text: str) -> int:
    number = whole_number(text)
    if number is None or not 0 < number < 65536:
        raise UsageError(f"port {text[:80]!r} does not exist", evidence="ports go from 1 to 65535")
    return number


def path_of(text: str) -> Path:
    """With ~ as whose gpunode runs. Raises UsageError."""
    try:
        if text and text.isprintable():
            return Path(text).expanduser()
    except RuntimeError as error:  # ~nosuchuser
        raise UsageError(f"{text[:80]!r} is in the home of nobody", evidence="there is no such user here") from error
    raise UsageError(f"{text[:80]!r} is not a path")


def _jump(text: str) -> str:
    """Every host of the chain is looked at now: a fault in it would else be one of the connection."""
    if text.strip().lower() in ("", NO_JUMP):
        return NO_JUMP
    for word in text.split(","):
        parse_target(word.strip())
    return text


# Key of our own inventory -> its parser. Ansible's variables become these first.
SETTINGS: dict[str, Callable[[str], Any]] = {
    "address": _address,
    "user": _user,
    "port": _port,
    "identity": path_of,
    "jump": _jump,
}
