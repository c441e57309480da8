"""What a person reads of a failed tool's output: its own reason, in one line."""

from __future__ import annotations

import pytest

from gpunode.apply.script import error_summary

WAITED = "Waiting for cache lock: Could not get lock /var/lib/dpkg/lock. It is held by process 1313 (python3)..."
LOCKED = "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"
MISSING = "E: Unable to locate package nvidia-open"

ZYPPER = """Resolving package dependencies...

Problem: 1: nothing provides 'dkms' needed by the to be installed nvidia-open-595.91.07-1.x86_64
 Solution 1: do not install nvidia-open-595.91.07-1.x86_64

Choose from above solutions by number or cancel [1/2/c/d/?] (c): c
"""
ZYPPER_LOCK = """System management is locked by the application with pid 243 (zypper).
Close this application before trying again.
"""
DNF5 = """Updating and loading repositories:
Repositories loaded.
Failed to resolve the transaction:
Problem: conflicting requests
  - nothing provides dkms needed by kmod-nvidia-open-dkms-3:595.91.07-1.x86_64
You can try to add to command line:
  --skip-broken to skip uninstallable packages
"""
PACMAN = """:: Synchronizing package databases...
error: extra: signature from "gpunode lab stranger" is unknown trust
error: failed to synchronize all databases (invalid or corrupted database (PGP signature))
"""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (f"{WAITED}\n{LOCKED}\n", f"{WAITED} · {LOCKED}"),
        (f"{WAITED}\nReading package lists...\n{MISSING}\n", MISSING),
        ("one\ntwo\n\n", "two"),
        ("", ""),
    ],
    ids=["the lock's holder is named", "a lock that was got is forgotten", "the last line", "silence"],
)
def test_last_words(output: str, words: str) -> None:
    assert error_summary(output) == words


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (ZYPPER, "nothing provides 'dkms'"),
        (ZYPPER_LOCK, "pid 243 (zypper)"),
        (DNF5, "Problem: conflicting requests"),
        (PACMAN, "unknown trust"),
    ],
    ids=[
        "zypper's problem, not its question",
        "zypper's lock and its holder",
        "dnf5's problem, not its advice",
        "pacman",
    ],
)
def test_the_tools_own_reason_is_found(output: str, said: str) -> None:
    assert said in error_summary(output)
    assert "(c): c" not in error_summary(output)
