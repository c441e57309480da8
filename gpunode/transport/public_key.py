"""A public key as it travels on the wire, also out of a certificate."""

from __future__ import annotations

import base64
import hashlib

from gpunode.transport.ssh_wire import Fields, packed
from gpunode.values import dataclass

CERTIFICATE = "-cert-v01@openssh.com"  # how the type of one ends
# The types that are read here, and how many strings follow the type.
KEY_STRINGS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
}


@dataclass(frozen=True)
class HostKey:
    type: str  # "ssh-ed25519"
    blob: bytes  # the public key as it travels on the wire

    @property
    def fingerprint(self) -> str:
        """As ssh prints it: "SHA256:" and base64 without padding."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode("ascii")
        return "SHA256:" + digest.rstrip("=")

    def __str__(self) -> str:
        return f"{self.type} {self.fingerprint}"


def certified_key(fields: Fields) -> HostKey:
    """The key at the beginning of a certificate; the next field is then its serial number. Raises ValueError."""
    name = fields.string().decode("ascii")
    kind = name.removesuffix(CERTIFICATE)
    if kind == name or kind not in KEY_STRINGS:
        raise ValueError(f"its type {name[:60]!r} is no certificate's that is read here")
    fields.string()  # a random number, so that nobody can foresee what is signed
    return HostKey(kind, packed([kind.encode(), *(fields.string() for _ in range(KEY_STRINGS[kind]))]))


def plain_key(key: HostKey) -> HostKey:
    """The key that a certificate is about; what is none stays as it is. Raises ValueError."""
    return certified_key(Fields(key.blob)) if key.type.endswith(CERTIFICATE) else key
