"""What a tool that failed says of its reason: picked from its output for messages, and what of that output is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpunode.regex import regex

# How apt and dpkg, dnf, pacman and tools in general begin such a line; then zypper's and dnf5's own.
_ERRORS = (
    *("E:", "Error:", "error:", "dpkg: error", "fatal:", "FATAL"),
    *("Problem", "Signature verification failed", "System management is locked", "Failed to"),
)
# apt says only in a warning why a repository "is not signed": gpgv in the first form, sqv (apt 3) in the second.
_SIGNATURE = regex(r"(W|Warning): (GPG error|(OpenPGP )?[Ss]ignature verification failed)")
# What dpkg said of each package stands above this, so that apt's own last word adds nothing.
_DPKG_FAILED = regex(r"(E|Error): Sub-process \S*dpkg returned an error code")
_DPKG_LIST = "Errors were encountered while processing:"
_DPKG_PROGRESS = (
    "(",
    "Preparing to",
    "Unpacking",
    "Setting up",
    "Processing triggers",
    "Removing",
    "Selecting",
    "Get:",
)


def error_summary(output: str) -> str:
    """The tool's own reason: its last error lines, else the last line that is not empty.

    apt names the lock's holder in an `E:` line and then continues with advice, so the last line alone is not enough.
    """
    lines = [line for line in output.splitlines() if line.strip()][-30:]
    errors = list(dict.fromkeys(_errors(lines)))
    if any("dpkg: error" in error for error in errors):
        errors = [error for error in errors if not _DPKG_FAILED.match(error)]
    # apt that waited in vain for a lock names the holder only in the line that announced the wait.
    locked = any("lock" in line for line in errors[-3:])
    holder = [line.strip() for line in lines if locked and line.startswith("Waiting for cache lock:")][-1:]
    return " · ".join(holder + errors[-3:]) or "".join(lines[-1:]).strip()


def _errors(lines: list[str]) -> Iterator[str]:
    """Each error in one line, with the indented lines in which dpkg, dnf5 and others go on to say why."""
    for number, line in enumerate(lines):
        first = line.strip()
        if not first.startswith(_ERRORS) and not _SIGNATURE.match(first):
            continue
        more = []
        for following in lines[number + 1 : number + 4]:
            if not following[:1].isspace() or not (first.endswith(":") or following.strip().startswith("- ")):
                break
            more.append(following.strip())
        words = " ".join((*_script_said(lines[:number], more), first, *more))
        yield re.sub(r"\s{2,}", " ", words)  # sqv puts its reasons far apart


def _script_said(before: list[str], more: list[str]) -> tuple[str, ...]:
    """The last line of a package's own script: dpkg tells only that the script failed."""
    failed = any("script" in line and "error exit status" in line for line in more)
    last = before[-1].strip() if before else ""
    return (f"{last};",) if failed and last and not last.startswith((*_DPKG_PROGRESS, *_ERRORS)) else ()


def tail(output: str, lines: int = 20) -> str:
    """The last lines of an output, for reports; without dpkg's closing list, which may be longer than that."""
    kept = output.splitlines()
    if _DPKG_LIST in kept:
        begin = len(kept) - kept[::-1].index(_DPKG_LIST)
        end = next((n for n in range(begin, len(kept)) if not kept[n].startswith(" ")), len(kept))
        del kept[begin - 1 : end]
    return "\n".join(kept[-lines:])
