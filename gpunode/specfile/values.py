"""The text of one value as what Spec has. Each raises UsageError that begins with the flag."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum

from gpunode.advice import meant
from gpunode.errors import UsageError
from gpunode.masking import masked
from gpunode.model.spec import parse_fingerprint, parse_runtimes


def choice(flag: str, kind: type[Enum] | Iterable[str]) -> Callable[[str], object]:
    values = {str(v.value): v for v in kind} if isinstance(kind, type) else {v: v for v in kind}

    def parse(text: str) -> object:
        if (word := text.strip().lower()) in values:
            return values[word]
        raise UsageError(
            f"{flag} {text!r} is not a choice",
            evidence=f"{meant(text, values)}the choices are {', '.join(values)}",
            remedy=f"choose one of them with {flag}",
        )

    return parse


def yes_no(flag: str) -> Callable[[str], bool]:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

    def parse(text: str) -> bool:
        if (word := text.strip().lower()) in words:
            return words[word]
        said = f"{flag} {text!r} is neither true nor false"
        raise UsageError(said, evidence=f"{meant(text, words)}the choices are true, false")

    return parse


def matching(flag: str, pattern: str, forms: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if re.fullmatch(pattern, text.strip()):
            return text.strip()
        raise UsageError(f"{flag} {masked(text)!r} is not of the right form", evidence=f"it is {forms}")

    return parse


def proxy(text: str) -> str:
    """A proxy's address. The message does not quote it: a password may be anywhere in a mistyped one."""
    word = text.strip()
    if "@" in word:
        raise UsageError(
            "--proxy must not hold a user or a password",
            evidence="arguments are for every user of a machine to read, and logs show the environment of commands",
            remedy="write it into the package manager's own configuration (apt.conf.d, dnf.conf) on the host",
        )
    if not re.fullmatch(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::[0-9]{1,5})?(?:/[^\s?#:]*)?", word):
        raise UsageError(
            "--proxy is not of the right form", evidence="it is an http:// or https:// URL: http://proxy.example:3128"
        )
    return word


def count(flag: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,4}", text.strip()):
            return int(text)
        raise UsageError(f"{flag} {text!r} is not a count", evidence="it is a whole number, 0 to 9999")

    return parse


def runtimes(text: str) -> tuple[str, ...] | None:
    from gpunode.engines.registry import ENGINES  # here, since --help names no engine and should load none

    return parse_runtimes(text, {name: one.labels for name, one in ENGINES.items()})


def fingerprints(text: str) -> tuple[str, ...]:
    return tuple(parse_fingerprint(part) for part in text.split(",") if part.strip())


def names(flag: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(","))
        if all(re.fullmatch(r"[\w./+-]+", name) for name in names):
            return names
        raise UsageError(
            f"{flag} {text!r} is not a list of programs", evidence="they are names or paths with commas: crun,runc"
        )

    return parse


def log_path(flag: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() == "off":
            return ""
        return matching(flag, r"/\S+", "an absolute path on the host, or off")(text)

    return parse
