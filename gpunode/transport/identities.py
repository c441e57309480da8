"""The keys to log in with, in the order in which ssh tries them, each with its certificate where it has one."""

from __future__ import annotations

import binascii
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from gpunode.errors import TransportError
from gpunode.transport.certificates import USER, Certificate, Malformed, day, read_public
from gpunode.transport.known_hosts import HostKey, public_key_blob
from gpunode.transport.public_key import CERTIFICATE
from gpunode.transport.secret import Secret
from gpunode.transport.ssh_config import DEFAULT_KEYS, Hop
from gpunode.transport.ssh_library import Agent, CertifiedKey, paramiko
from gpunode.transport.ssh_wire import Fields

_LARGEST_KEY_BYTES = 1024 * 1024
_OPENSSH = b"openssh-key-v1\0"  # how OpenSSH's private keys begin (PROTOCOL.key)
_unlocked: dict[Path, paramiko.PKey] = {}  # by the person's passphrase, before any host is asked


class Locked(TransportError):
    """A private key with a passphrase that nobody gave."""


@contextmanager
def identities(hop: Hop, skipped: list[str]) -> Iterator[Iterator[tuple[str, paramiko.PKey]]]:
    """(name for messages, key) of each; the agent signs within this block, also when the last one was taken.

    Certificates come before the keys that they are about; `skipped` says what was not tried, and why.
    """
    with _agent_keys(hop) as agent:
        yield _in_order(hop, agent, skipped)


def _in_order(hop: Hop, agent: dict[bytes, paramiko.PKey], skipped: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    for path in hop.certificates:
        yield from _certified(path, hop.identities, agent, skipped)
    for path in hop.identities:
        beside = path.with_name(f"{path.name}-cert.pub")
        if not hop.certificates and beside.exists():  # as for ssh, which looks there unless it is told where
            yield from _certified(beside, (path,), agent, skipped)
        if found := _signer(path, agent, skipped):
            agent.pop(found[1].asbytes(), None)
            yield found
    if not hop.identities_only:
        for blob, key in agent.items():
            yield f"agent key {key.get_name()} {HostKey(key.get_name(), blob).fingerprint}", key


def _certified(
    path: Path, keys: Sequence[Path], agent: dict[bytes, paramiko.PKey], skipped: list[str]
) -> Iterator[tuple[str, paramiko.PKey]]:
    """A user's certificate with the key that it is about, which the agent or one of `keys` has."""
    try:
        certificate = read_public(path)
        if certificate.kind != USER:
            raise Malformed("it is a host's")
    except (OSError, Malformed) as error:
        skipped.append(f"{path} is no certificate to log in with ({error})")
        return
    label = f"{path}{f' (expired on {day(certificate.valid_before)})' if certificate.ended else ''}"
    if (held := agent.get(certificate.key.blob)) is not None:
        yield f"{label} (agent)", _with(certificate, held)
        return
    for key in keys:
        if public_blob(key) in (certificate.key.blob, None):
            found = _signer(key, agent, [])
            if found is not None and found[1].asbytes() == certificate.key.blob:
                yield label, _with(certificate, found[1])
                return
    skipped.append(f"{path} is about a key that is not at hand ({certificate.key})")


def _with(certificate: Certificate, key: paramiko.PKey) -> paramiko.PKey:
    return CertifiedKey(key, certificate.key.type + CERTIFICATE, certificate.blob)


def _signer(path: Path, agent: dict[bytes, paramiko.PKey], skipped: list[str]) -> tuple[str, paramiko.PKey] | None:
    """The key of a file, by the agent where it holds it."""
    public = public_blob(path)
    if public is not None and public in agent:
        return f"{path} (agent)", agent[public]
    if not path.exists():
        if path.name not in DEFAULT_KEYS:
            skipped.append(f"{path} does not exist")
        return None
    if public_key_blob(path) is not None:
        skipped.append(f"{path} is the public half of a key that the agent does not hold")
        return None
    try:
        return str(path), load(path)
    except TransportError as error:
        skipped.append(error.problem)
        return None


def public_blob(path: Path) -> bytes | None:
    """A private key's public half: out of the .pub file, or of the key itself, where OpenSSH leaves it in the clear.

    `path` may be the .pub file of a key that an agent holds, as for ssh.
    """
    return public_key_blob(path.with_name(path.name + ".pub")) or public_key_blob(path) or _public_half(path)


def _public_half(path: Path) -> bytes | None:
    try:
        lines = _text(path).encode("ascii", "replace").split(b"\n")
        content = binascii.a2b_base64(b"".join(line for line in lines if not line.startswith(b"-----")))
        if not content.startswith(_OPENSSH):
            return None
        fields = Fields(content[len(_OPENSSH) :])
        _cipher, _kdf, _options, _keys = fields.string(), fields.string(), fields.string(), fields.number(4)
        return fields.string()
    except (OSError, ValueError):
        return None


def _text(path: Path) -> str:
    """Of a private key's file. Raises OSError, ValueError."""
    if not path.is_file():
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        content = file.read(_LARGEST_KEY_BYTES + 1)
    if len(content) > _LARGEST_KEY_BYTES:
        raise ValueError("it is too long for a key")
    return content.decode("ascii", "replace")


def locked(hop: Hop) -> tuple[tuple[Path, ...], bool]:
    """(the key files that only a passphrase opens, whether there is another key to try)."""
    with _agent_keys(hop) as keys:
        agent = set(keys)
    found, others = [], bool(agent) and not hop.identities_only
    for path in hop.identities:
        if public_blob(path) in agent:
            others = True
        elif path.exists():
            try:
                load(path)
                others = True
            except Locked:
                found.append(path)
            except TransportError:
                continue  # said where the login fails
    return tuple(found), others


def unlock(path: Path, passphrase: Secret) -> bool:
    """Open a key for all hosts of this run; False where it is another passphrase's. Raises TransportError."""
    try:
        _unlocked[path] = _read(path, passphrase.reveal())
    except (ValueError, TypeError, paramiko.SSHException):
        return False
    except OSError as error:
        raise TransportError(f"{path} cannot be read as a private key ({error})") from error
    load.cache_clear()
    return True


@cache
def load(path: Path) -> paramiko.PKey:
    """A private key, read once for all hosts. Raises TransportError with the reason as its sentence; Locked."""
    if path in _unlocked:
        return _unlocked[path]
    try:
        return _read(path)
    except (TypeError, paramiko.PasswordRequiredException) as error:
        raise Locked(f"{path} has a passphrase, and the agent does not hold it (ssh-add {path})") from error
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise TransportError(f"{path} cannot be read as a private key ({error})") from error


def _read(path: Path, passphrase: str | None = None) -> paramiko.PKey:
    """The key alone: paramiko's own `from_path` also reads the certificate next to it, and fails where that is bad."""
    text = _text(path)
    public = _public_half(path)
    kind = Fields(public).string().decode("ascii") if public else "ecdsa" if "BEGIN EC " in text else "ssh-rsa"
    if kind == "ssh-ed25519":
        return paramiko.Ed25519Key.from_private_key(io.StringIO(text), passphrase)
    if kind == "ssh-rsa":
        return paramiko.RSAKey.from_private_key(io.StringIO(text), passphrase)
    if kind.startswith("ecdsa"):
        return paramiko.ECDSAKey.from_private_key(io.StringIO(text), passphrase)
    raise ValueError(f"a key of type {kind[:60]!r}")


@contextmanager
def _agent_keys(hop: Hop) -> Iterator[dict[bytes, paramiko.PKey]]:
    """What the agent signs for within this block, by its public key or certificate."""
    agent, keys = None, dict[bytes, paramiko.PKey]()
    # A dead SSH_AUTH_SOCK, or a comment that is no UTF-8: ssh goes on with the files, too.
    with suppress(paramiko.SSHException, OSError, ValueError):
        agent = Agent(hop.agent) if hop.agent else None
        keys = {key.blob: _held(key) for key in agent.get_keys()} if agent else {}
    try:
        yield keys
    finally:
        if agent is not None:
            agent.close()


def _held(key: paramiko.AgentKey) -> paramiko.PKey:
    """paramiko takes an RSA certificate for the key in it."""
    return CertifiedKey(key, key.name, key.blob) if key.name.endswith(CERTIFICATE) else key
