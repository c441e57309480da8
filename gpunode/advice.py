"""Words for a person to type, who may paste them into root's shell: held to the same rules as gpunode's own actions.

A value that a host, a file or a user chose is quoted for a POSIX shell wherever it stands in advice; and no advice has
root write, copy or delete by a path whose folders are somebody else's, since they lead where that user wants.
"""

from __future__ import annotations

import shlex


def typed(*words: str) -> str:
    """A command of these words: `rm '/etc/cdi/$(x).yaml'`."""
    return shlex.join(words)


def named(value: str) -> str:
    """One value in a sentence or command; plain names and paths look as they are."""
    return shlex.quote(value)


def by_user(owner: str, *words: str) -> str:
    """A command as the user "UID:GID" in whose folders it works; as root for ""."""
    uid, _, gid = owner.partition(":")
    lead = ("setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", "--") if owner else ()
    return typed(*lead, *words)
