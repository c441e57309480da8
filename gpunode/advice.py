"""Commands for the user to run, maybe pasted into root's shell: under the same rules as gpunode's own actions.

A value that a host, a file or a user chose is quoted for a POSIX shell wherever it stands in advice; and no advice has
root write, copy or delete by a path whose directories are somebody else's, since they lead where that user wants. And
the one place that proposes a word for a mistyped one.
"""

from __future__ import annotations

from collections.abc import Iterable


def typed(*words: str) -> str:
    """A command of these words: `rm '/etc/cdi/$(x).yaml'`."""
    import shlex  # late, as difflib: every verb loads this file, and --help needs neither

    return shlex.join(words)


def named(value: str) -> str:
    """One value in a sentence or command; plain names and paths look as they are."""
    import shlex

    return shlex.quote(value)


def by_user(owner: str, *words: str) -> str:
    """A command as the user "UID:GID" in whose directories it works; as root for ""."""
    uid, _, gid = owner.partition(":")
    lead = ("setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", "--") if owner else ()
    return typed(*lead, *words)


def meant(word: str, known: Iterable[str]) -> str:
    """The one known word that is closest, before other evidence: "did you mean open? "; "" where none is close."""
    import difflib

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.strip().lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]}? " if near else ""


def listing(items: Iterable[str], limit: int = 4, *, between: str = ", ", what: str = "more") -> str:
    """ "a, b, c and 5 more"; sentences and lines, which are parted otherwise, are parted so before the last as well."""
    all_items = list(items)
    more = len(all_items) - limit
    last = f"{' ' if between == ', ' else between}{and_more(more, what)}" if more > 0 else ""
    return between.join(all_items[:limit]) + last


def and_more(count: int, what: str = "more") -> str:
    return f"and {count} {what}"
