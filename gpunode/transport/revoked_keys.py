"""RevokedHostKeys of ssh_config(5): keys that no host may show, whatever is in known_hosts.

A text of public keys, or a binary list (key_revocation_list.py). As in OpenSSH (authfile.c, sshkey_check_revoked), a
file that is missing, unreadable or not understood refuses every host: who wrote the line wants revoked keys refused,
and we could not tell one.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from pathlib import Path

from gpunode.errors import TransportError
from gpunode.transport.known_hosts import HostKey, KnownKey
from gpunode.transport.public_key import plain_key
from gpunode.transport.ssh_wire import Fields, strings

SIZE_LIMIT_BYTES = 16 * 1024 * 1024  # 200,000 keys
_BINARY = b"SSHKRL\n\0"  # how OpenSSH's key revocation lists begin (PROTOCOL.krl)


def revoked(path: Path, key: HostKey) -> KnownKey | None:
    """The line or list that revokes `key`, or certificate. Raises TransportError when it cannot be read as such."""
    try:
        found = path.stat()
        keys = _keys(path, found.st_mtime_ns, found.st_size)
    except OSError as error:
        raise _refusal(path, error.strerror or str(error), "make it readable for you") from error
    if keys is None:
        return KnownKey(key, str(path)) if _listed(path, found.st_mtime_ns, key) else None
    number = keys.get(key.blob)
    return None if number is None else KnownKey(key, f"{path}:{number}")


def _listed(path: Path, mtime_ns: int, key: HostKey) -> bool:
    from gpunode.transport.key_revocation_list import revokes  # with subprocess and tempfile, which no text needs

    try:
        return revokes(path, mtime_ns, key)
    except OSError as error:
        raise TransportError(
            f"no host key is accepted while {path} cannot be read as RevokedHostKeys",
            evidence=f"it is a binary key revocation list, which only ssh-keygen reads: {error}",
            remedy="install OpenSSH's ssh-keygen here, or list the revoked public keys as text, one a line",
        ) from error
    except ValueError as error:
        raise _refusal(path, f"ssh-keygen -Q says {str(error)!r}", "make the list anew (ssh-keygen -k)") from error


@lru_cache(maxsize=8)
def _keys(path: Path, _mtime_ns: int, size: int) -> dict[bytes, int] | None:
    """Each key as it travels on the wire, and its line; None: it is a binary list. Read once for all hosts."""
    if not path.is_file() or size > SIZE_LIMIT_BYTES:
        raise _refusal(path, "it is no regular file, or a huge one", "name the file of revoked keys")
    content = path.read_bytes()
    if content.startswith(_BINARY):
        return None
    keys = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        words = line.split()
        if words and not words[0].startswith(b"#"):
            keys[_blob(words, path, number)] = number
    return keys


def _blob(words: list[bytes], path: Path, number: int) -> bytes:
    """The key of a line `ssh-ed25519 AAAA... comment`."""
    try:
        blob = base64.b64decode(words[1], validate=True)
        if Fields(blob).string() != words[0]:
            raise ValueError
        blob = plain_key(HostKey(words[0].decode("ascii"), blob)).blob  # a certificate's line is about its key
        if len(strings(blob)) < 2:
            raise ValueError
        return blob
    except (IndexError, ValueError):
        raise _refusal(path, f"line {number} is no public key", "correct the line, or remove it") from None


def _refusal(path: Path, why: str, remedy: str) -> TransportError:
    return TransportError(
        f"no host key is accepted while {path} cannot be read as RevokedHostKeys",
        evidence=f"{why}; ssh refuses every host then, too",
        remedy=f"{remedy}, or correct RevokedHostKeys in ~/.ssh/config",
    )
