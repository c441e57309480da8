"""OpenPGP v4 keys (RFC 4880, EdDSA of RFC 9580 5.5.5.5) made in Python: a test can bind what gpg would not."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CREATED = 1_700_000_000
ED25519 = bytes.fromhex("092b06010401da470f01")  # length and OID of the curve
CERTIFY_SIGN, ENCRYPT = 0x03, 0x0C


def packet(tag: int, body: bytes) -> bytes:
    """A new-format packet with a five-octet length."""
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


def armored(binary: bytes) -> bytes:
    lines = base64.encodebytes(binary).replace(b"\n", b"")
    wrapped = b"\n".join(lines[at : at + 64] for at in range(0, len(lines), 64))
    check = b"=" + base64.b64encode(_crc24(binary).to_bytes(3, "big"))  # without it gpg 2.2 loses the last packets
    return b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n%s\n%s\n-----END PGP PUBLIC KEY BLOCK-----\n" % (wrapped, check)


def _crc24(data: bytes) -> int:
    """RFC 4880, 6.1."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc = crc << 1 ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc


@dataclass(frozen=True)
class Key:
    """One Ed25519 key; its bytes follow from its name."""

    name: str

    @cached_property
    def secret(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(self.name.encode()).digest())

    @cached_property
    def public(self) -> bytes:
        """The body of its public key packet."""
        raw = self.secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return b"\x04" + CREATED.to_bytes(4, "big") + b"\x16" + ED25519 + _mpi(b"\x40" + raw)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha1(_hashed(self.public)).hexdigest().upper()

    @property
    def block(self) -> bytes:
        """Primary key, user id, self-signature: the least that gpg imports."""
        user = f"{self.name} <{self.name}@example.invalid>".encode()
        signed = _hashed(self.public) + b"\xb4" + len(user).to_bytes(4, "big") + user
        return packet(6, self.public) + packet(13, user) + self.signature(0x13, CERTIFY_SIGN, signed)

    def subkey(self, other: Key, *, forged: bool = False) -> bytes:
        """`other`'s public half as this key's encryption subkey; forged: its binding signature does not verify."""
        signed = _hashed(self.public) + (b"" if forged else _hashed(other.public))
        return packet(14, other.public) + self.signature(0x18, ENCRYPT, signed)

    def signature(self, kind: int, flags: int, signed: bytes) -> bytes:
        hashed = b"\x05\x02" + CREATED.to_bytes(4, "big") + b"\x02\x1b" + bytes([flags])
        hashed += b"\x16\x21\x04" + bytes.fromhex(self.fingerprint)
        head = bytes([4, kind, 22, 8]) + len(hashed).to_bytes(2, "big") + hashed
        digest = hashlib.sha256(signed + head + b"\x04\xff" + len(head).to_bytes(4, "big")).digest()
        both = self.secret.sign(digest)
        issuer = b"\x09\x10" + bytes.fromhex(self.fingerprint[-16:])  # gpg 2.2 looks the signer up by this alone
        unhashed = len(issuer).to_bytes(2, "big") + issuer
        return packet(2, head + unhashed + digest[:2] + _mpi(both[:32]) + _mpi(both[32:]))


def _mpi(number: bytes) -> bytes:
    number = number.lstrip(b"\0")
    bits = len(number) * 8 - (8 - number[0].bit_length() if number else 0)
    return bits.to_bytes(2, "big") + number


def _hashed(public: bytes) -> bytes:
    return b"\x99" + len(public).to_bytes(2, "big") + public
