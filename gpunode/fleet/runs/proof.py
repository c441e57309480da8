"""Whether a spec is the one that a run began with, where a secret in it keeps the spec itself out of the record."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from gpunode.regex import regex

FORM = regex("[0-9a-f]{32}:[0-9a-f]{64}")
_ROUNDS = 200_000  # of PBKDF2 (RFC 8018), a tenth of a second: passwords are not to be guessed from what is kept


def proof_of(text: str) -> str:
    """ "SALT:HASH", both hexadecimal; another one each time."""
    salt = secrets.token_hex(16)
    return f"{salt}:{_hash(text, salt)}"


def proves(proof: str, text: str) -> bool:
    """Whether `proof` was made of this text; "" proves nothing."""
    salt, _, kept = proof.partition(":")
    return bool(kept) and hmac.compare_digest(_hash(text, salt), kept)


def _hash(text: str, salt: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", text.encode("utf-8", "surrogateescape"), salt.encode(), _ROUNDS).hex()
