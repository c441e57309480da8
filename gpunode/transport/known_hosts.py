"""OpenSSH's known_hosts, parsed once and shared by all hosts of a fleet (paramiko's own reader is quadratic).

The forms are those of sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: names and patterns with commas, `[host]:port`, hashed
names `|1|salt|hash`, and the marks @revoked and @cert-authority.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hmac
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from gpunode.errors import TransportError
from gpunode.regex import regex
from gpunode.transport.public_key import HostKey as HostKey
from gpunode.transport.public_key import plain_key
from gpunode.values import dataclass


@dataclass(frozen=True)
class KnownKey:
    key: HostKey
    where: str  # "/home/a/.ssh/known_hosts:12"


class Trust(Enum):
    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"  # the host is known with other keys, of this type or another
    REVOKED = "revoked"


@dataclass(frozen=True)
class Verdict:
    trust: Trust
    known: tuple[KnownKey, ...] = ()  # the lines about this host


# One without a mark, as it stands there: text, path, number. Its key is read when somebody asks for its host: a file of
# tens of thousands is looked through once, for the names. Python's collector of garbage leaves tuples of texts alone;
# of objects it would look at tens of thousands, again and again.
Line = tuple[str, str, int]


def _read(line: Line) -> KnownKey | None:
    """None where there is no key that can be read: it can vouch for nobody."""
    text, path, number = line
    words = text.split(None, 3)
    return _known_key(words[1:3], f"{path}:{number}") if len(words) > 2 else None


def _known_key(words: Sequence[str], where: str) -> KnownKey | None:
    """`words`: its type, its blob in base64."""
    try:
        blob = base64.b64decode(words[1], validate=True)
    except ValueError:  # includes binascii.Error
        return None
    return KnownKey(HostKey(words[0], blob), where) if blob else None


@dataclass
class KnownHosts:
    """All lines of the user's and the system's files, by how their names are found."""

    exact: dict[str, list[Line]] = field(default_factory=dict)  # nearly all, of which a run needs a few
    hashed: list[tuple[bytes, bytes, Line]] = field(default_factory=list)  # salt, HMAC-SHA1
    patterns: list[tuple[str, KnownKey]] = field(default_factory=list)
    revoked: list[tuple[str, KnownKey]] = field(default_factory=list)
    authorities: list[tuple[str, KnownKey]] = field(default_factory=list)  # @cert-authority: names, whose key

    def keys(self, name: str) -> tuple[KnownKey, ...]:
        """Every key that stands for `name`: "host", or "[host]:port" for a port other than 22."""
        raw = name.encode()
        lines = [*self.exact.get(name, ())]
        lines += [line for salt, want, line in self.hashed if hmac.digest(salt, raw, "sha1") == want]
        found = [key for line in lines if (key := _read(line))]
        return (*found, *(known for names, known in self.patterns if matches(names, name)))

    def verdict(self, name: str, key: HostKey) -> Verdict:
        known = self.keys(name)
        if revoked := self.revocations((name,), (key,)):
            return Verdict(Trust.REVOKED, revoked)
        if any(k.key.blob == key.blob for k in known):
            return Verdict(Trust.KNOWN, known)
        return Verdict(Trust.CHANGED if known else Trust.UNKNOWN, known)

    def revocations(self, names: Sequence[str], keys: Sequence[HostKey]) -> tuple[KnownKey, ...]:
        """The @revoked lines about a host of these names that have one of `keys`: its own, or its authority's."""
        blobs = {key.blob for key in keys}
        return tuple(k for said, k in self.revoked if k.key.blob in blobs and any(_speaks_of(said, n) for n in names))

    def authorities_for(self, names: Sequence[str]) -> tuple[KnownKey, ...]:
        """Whose certificates vouch for a host of these names."""
        return tuple(k for said, k in self.authorities if any(_speaks_of(said, name) for name in names))


def algorithm_type(algorithm: str) -> str:
    """The key type that a host key algorithm signs with: "rsa-sha2-512" -> "ssh-rsa"."""
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm


def public_key_blob(path: Path) -> bytes | None:
    """The key in a .pub file as it travels on the wire; None where there is no such file or no key in it."""
    try:
        kind, text = path.read_text("utf-8", "replace").split()[:2]
        blob = binascii.a2b_base64(text)
    except (OSError, ValueError):
        return None
    return blob if blob[4 : 4 + len(kind)] == kind.encode() else None


def host_name(host: str, port: int) -> str:
    """How known_hosts names a host: lower case, with the port only when it is not 22."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def parse(files: Iterable[tuple[str, str]]) -> KnownHosts:
    """`files` are (path, text). A line that cannot be read is passed over, as ssh does: it can vouch for nobody."""
    known = KnownHosts()
    exact = known.exact
    for path, text in files:
        # Nothing else ends a line for ssh: a comment that holds U+2028 is still a comment.
        for number, line in enumerate(text.split("\n"), 1):
            names = line.partition(" ")[0]
            entry = (line, path, number)
            if not names or _NO_NAMES.search(names):
                _add(known, entry)
                continue
            for name in names.lower().split(","):
                if name in exact:
                    exact[name].append(entry)
                else:
                    exact[name] = [entry]
    return known


_NO_NAMES = regex(r"[#@|*?!\s]")


def _add(known: KnownHosts, line: Line) -> None:
    """A line that does not begin with names and a blank."""
    text, path, number = line
    first = text.split(None, 1)[:1]
    if first and first[0].startswith("|1|"):
        with suppress(ValueError):  # includes binascii.Error
            known.hashed.append((*_hash(first[0]), line))
        return
    words = text.split()
    if not words or words[0].startswith("#"):
        return
    mark, words = (words[0], words[1:]) if words[0].startswith("@") else ("", words)
    if len(words) < 3:
        return
    if mark:
        _add_marked(known, mark, words, f"{path}:{number}")
    elif _PATTERN.search(words[0]) is None:
        for name in words[0].lower().split(","):
            known.exact.setdefault(name, []).append(line)
    elif entry := _known_key(words[1:3], f"{path}:{number}"):
        known.patterns.append((words[0], entry))


_PATTERN = regex(r"^\||[*?!]")


def _add_marked(known: KnownHosts, mark: str, words: Sequence[str], where: str) -> None:
    entry = _known_key(words[1:3], where)
    if entry is None:
        return
    if mark == "@revoked":
        with suppress(ValueError):  # a certificate that is none
            known.revoked.append((words[0], replace(entry, key=plain_key(entry.key))))
    elif mark == "@cert-authority":
        known.authorities.append((words[0], entry))


def _hash(names: str) -> tuple[bytes, bytes]:
    """(salt, HMAC-SHA1) of a hashed name. Raises ValueError where it is none."""
    salt, digest = names[3:].split("|")
    return binascii.a2b_base64(salt), binascii.a2b_base64(digest)


def matches(names: str, name: str) -> bool:
    """OpenSSH's pattern list: any pattern, and none that begins with `!`. Brackets are literal."""
    hit = False
    for pattern in names.lower().split(","):
        literal = pattern.lstrip("!").replace("[", "[[]")
        if fnmatchcase(name, literal):
            if pattern.startswith("!"):
                return False
            hit = True
    return hit


def _speaks_of(names: str, name: str) -> bool:
    if not names.startswith("|1|"):
        return matches(names, name)
    try:
        salt, digest = _hash(names)
    except ValueError:
        return False
    return hmac.digest(salt, name.encode(), "sha1") == digest


_lock = threading.Lock()
_parsed: dict[tuple[tuple[str, int, int], ...], KnownHosts] = {}


def load(paths: Sequence[Path]) -> KnownHosts:
    """The files that exist, parsed once per content for all threads. Raises TransportError where one cannot be read."""
    stats = tuple(found for p in paths if (found := _stat(p)) is not None)
    with _lock:
        if stats not in _parsed:
            _parsed[stats] = parse((path, _text(Path(path))) for path, _, _ in stats)
        return _parsed[stats]


def _stat(path: Path) -> tuple[str, int, int] | None:
    """Path, time and size; None where there is none. Raises TransportError."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    return str(path), found.st_mtime_ns, found.st_size


def _unreadable(path: Path, error: OSError | str) -> TransportError:
    return TransportError(
        f"{path} cannot be read as known_hosts",
        evidence=str(error),
        remedy="make it a file that you can read, or name another with UserKnownHostsFile in ~/.ssh/config",
    )


def _text(path: Path) -> str:
    """With its carriage returns as they are: read as text, one alone would end a line. Raises TransportError."""
    try:
        # A FIFO has no end; /dev/null is what people name for none.
        if path.exists() and not path.is_file() and not path.is_char_device():
            raise _unreadable(path, "it is no regular file")
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise _unreadable(path, error) from error


def accept_new(path: Path, name: str, key: HostKey) -> Verdict:
    """Append `key` for `name`, once, even when several runs do so together. Returns what the file then holds.

    A host that another run added meanwhile is compared with what that run wrote: a different key is CHANGED.
    Raises TransportError where nothing can be added to it; /dev/null, with which no key is kept, takes everything.
    """
    try:
        return _added(path, name, key)
    except OSError as error:
        raise TransportError(
            f"the key of {name} cannot be added to {path}",
            evidence=str(error),
            remedy="make it a file that you can write, or add the host's key by hand (ssh-keyscan, then compare it)",
        ) from error


def _added(path: Path, name: str, key: HostKey) -> Verdict:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        text = _text(path)
        verdict = parse([(str(path), text)]).verdict(name, key)
        if verdict.trust is Trust.UNKNOWN:
            line = f"{name} {key.type} {base64.b64encode(key.blob).decode('ascii')}\n"
            os.write(descriptor, ("\n" + line if text and not text.endswith("\n") else line).encode())
            if not path.is_char_device():
                os.fsync(descriptor)
            verdict = Verdict(Trust.KNOWN)
        return verdict
    finally:
        os.close(descriptor)
