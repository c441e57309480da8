"""What a person reads of a failed tool's output: its own reason, in one line."""

from __future__ import annotations

import pytest

from gpunode.apply.shell import last_words

WAITED = "Waiting for cache lock: Could not get lock /var/lib/dpkg/lock. It is held by process 1313 (python3)..."
LOCKED = "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"
MISSING = "E: Unable to locate package nvidia-open"


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
    assert last_words(output) == words
