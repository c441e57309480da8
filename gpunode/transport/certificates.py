"""OpenSSH's certificates (PROTOCOL.certkeys): what one says, whether its authority signed it, and for whom."""

from __future__ import annotations

import base64
import time
from pathlib import Path

from gpunode.transport.public_key import CERTIFICATE, HostKey, certified_key
from gpunode.transport.ssh_wire import Fields, strings
from gpunode.values import dataclass

USER, HOST = 1, 2  # what a certificate is for
FOREVER = 2**64 - 1
MOST_PRINCIPALS = 256  # OpenSSH reads no more (sshkey.h, SSHKEY_CERT_MAX_PRINCIPALS)
_LARGEST_BYTES = 64 * 1024  # of a certificate's file: real ones have two
_SMALLEST_RSA_BITS = 1024  # RequiredRSASize of ssh_config(5), as it is unless somebody sets it
# What ssh lets an authority sign with (CASignatureAlgorithms), less security keys, whose signatures are not verified
# here. SHA-1 is not in it.
_SIGNED_WITH = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
}


class Malformed(ValueError):
    """Not a certificate, or one that nobody signed; str() says why."""


@dataclass(frozen=True)
class Certificate:
    """What it says. Only `checked` tells whether its authority's key signed that."""

    blob: bytes
    key: HostKey  # the plain key that it is about
    kind: int  # USER | HOST
    id: str  # what the authority calls it
    principals: tuple[str, ...]  # hosts or users
    valid_after: int  # seconds since 1970; from then on
    valid_before: int  # up to then, and no longer; FOREVER
    critical_options: bytes
    authority: HostKey
    signed_with: str  # "rsa-sha2-512"

    @property
    def ended(self) -> bool:
        """By this machine's clock."""
        return time.time() >= self.valid_before


def read(blob: bytes) -> Certificate:
    """Raises Malformed."""
    try:
        return _read(Fields(blob), blob)
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(str(error)) from error


def read_public(path: Path) -> Certificate:
    """The certificate in a file like id_ed25519-cert.pub. Raises OSError, Malformed."""
    if path.exists() and not path.is_file():
        raise Malformed("it is no regular file")
    with path.open("rb") as file:
        words = file.read(_LARGEST_BYTES).split()
    try:
        return read(base64.b64decode(words[1], validate=True))
    except IndexError:
        raise Malformed("there is no certificate in it") from None
    except ValueError as error:
        raise Malformed(str(error)) from error


def _read(fields: Fields, blob: bytes) -> Certificate:
    key = certified_key(fields)
    fields.number(8)  # serial
    use = fields.number(4)
    if use not in (USER, HOST):
        raise Malformed(f"it is for neither users nor hosts (type {use})")
    identity = fields.string().decode("utf-8", "replace")
    principals = tuple(word.decode("utf-8", "replace") for word in strings(fields.string()))
    if len(principals) > MOST_PRINCIPALS:
        raise Malformed(f"it has {len(principals)} principals; {MOST_PRINCIPALS} are the limit")
    after, before = fields.number(8), fields.number(8)
    critical = fields.string()
    strings(critical), strings(fields.string())  # both have to be whole; extensions are the server's
    fields.string()  # reserved
    authority, signature = fields.string(), strings(fields.string())
    if fields.more or len(signature) < 2:
        raise Malformed("it does not end where it should")
    ca = HostKey(Fields(authority).string().decode("ascii"), authority)
    signed_with = signature[0].decode("ascii")
    return Certificate(blob, key, use, identity, principals, after, before, critical, ca, signed_with)


def unverified(certificate: Certificate) -> str:
    """Why this signature cannot be verified here, though it may be good; "" where it can."""
    if certificate.authority.type not in _SIGNED_WITH:
        return f"gpunode verifies no signature of an authority's key of type {certificate.authority.type[:60]!r}"
    if certificate.signed_with not in _SIGNED_WITH[certificate.authority.type]:
        return f"its authority signed it with {certificate.signed_with[:60]!r}, which is not accepted"
    return ""


def verify(certificate: Certificate) -> None:
    """Whether its authority's key signed it, by the cryptography library. Raises Malformed where it did not.

    `unverified` is asked first.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import SSHCertificate, load_ssh_public_identity

    line = f"{certificate.key.type}{CERTIFICATE} ".encode() + base64.b64encode(certificate.blob)
    try:
        found = load_ssh_public_identity(line)
        if not isinstance(found, SSHCertificate):
            raise Malformed("it is no certificate")
        found.verify_cert_signature()
        signer = found.signature_key()
    except InvalidSignature:
        raise Malformed("its signature is not its authority's") from None
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Malformed(str(error) or "it cannot be verified") from error
    if isinstance(signer, RSAPublicKey) and signer.key_size < _SMALLEST_RSA_BITS:
        raise Malformed(f"its authority's RSA key has {signer.key_size} bits; {_SMALLEST_RSA_BITS} are the least")


def refusal(certificate: Certificate, name: str, now_s: float | None = None) -> str:
    """Why a certificate that its authority signed does not stand for host `name`; "" where it does.

    As ssh decides (sshkey.c, sshkey_cert_check_host), except that a certificate for no name at all stands for none,
    as since OpenSSH 10.3, not for every one, and that patterns among its names are not read.
    """
    now = time.time() if now_s is None else now_s
    if certificate.kind != HOST:
        return "it is a user's certificate, not a host's"
    if now < certificate.valid_after:
        return f"it is valid from {day(certificate.valid_after)} on only"
    if now >= certificate.valid_before:
        return f"it expired on {day(certificate.valid_before)}"
    if not certificate.principals:
        return "it names no host"
    if name not in certificate.principals:
        return f"it is for {', '.join(certificate.principals)[:200]}, not for {name}"
    if certificate.critical_options:
        return "it has critical options, and for hosts none is known"
    return ""


def day(seconds: int) -> str:
    """ "2026-01-31 12:00 UTC", for messages; a time that no calendar has as a number."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"
