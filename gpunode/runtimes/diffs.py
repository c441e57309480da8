"""What a config change looks like to a person: a unified diff in which no secret is readable."""

from __future__ import annotations

import difflib
import re

MASK = "********"
# registry credentials (auth, password, token, identitytoken), keys, and cookies, as JSON or TOML write them
_NAME = (
    r"[\w.-]*(?:auth|password|passwd|secret|token|api[_-]?key|access[_-]?key|credential|authorization|cookie)[\w.-]*"
)
_QUOTED = r"\"(?:\\.|[^\"\\])*\"|'[^']*'"
SECRET = re.compile(
    rf"(?P<before>[\"']?{_NAME}[\"']?\s*[:=]\s*)(?P<value>{_QUOTED}|\[[^\]\n]*\]|[^\s,\]}}{{\[\"'][^\s,\]}}]*)",
    re.IGNORECASE,
)
# https://user:password@proxy.example:3128
IN_URL = re.compile(r"(?P<before>[a-z][a-z0-9+.-]*://)[^/@\s\"']+@", re.IGNORECASE)


def masked(text: str) -> str:
    """`text` with the values of registry auths, passwords and tokens, and the user part of URLs, replaced."""
    text = SECRET.sub(lambda m: m["before"] + _mask(m["value"]), text)
    return IN_URL.sub(rf"\g<before>{MASK}@", text)


def unified(path: str, before: str | None, after: str) -> str:
    """A unified diff, masked; "" for equal texts. A file that was absent is compared to /dev/null."""
    # Masked after comparing: a changed secret is still shown as changed.
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        after.splitlines(),
        path if before is not None else "/dev/null",
        path,
        lineterm="",
    )
    return "\n".join(masked(line) for line in lines)


def _mask(value: str) -> str:
    quote = value[0] if value[0] in "\"'" else '"'
    return f"{quote}{MASK}{quote}"
