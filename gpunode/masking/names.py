"""Which names hold secrets: of keys, flags, environment variables and headers."""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "MASKED"
# Long enough to mean one thing wherever they stand in a name: "identitytoken", "db_password", "X-Amz-Security-Token".
_ANYWHERE = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "encryptionkey",
    "signingkey",
    "licensekey",
    "authkey",
    "accountkey",
    "sharedkey",
)
# Words of their own: "gelf-pass", "auths", "pwd".
_WORD = re.compile(
    r"pass|pwd|pw|userpwd|passcode|auths?|oauth|bearer|authorization|cookies?|creds?|psk|sas|sig|jwt|otp"
)
# Ends of names whose value is a place or a switch, though a word of secrets stands before it.
_HARMLESS_END = re.compile(r"files?|path|dir|plugins?|ttl|timeout|type|mode|enabled")
# Values that say nothing: switches and nothing at all.
PLAIN = frozenset(("", "true", "false", "null", "yes", "no", "on", "off", "none", "~", "{}", "[]"))
_LONGEST = 256  # characters of a name; what is longer is judged by its end


@lru_cache(maxsize=4096)
def _judged(name: str) -> bool:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    words = re.findall(r"[a-z0-9]+", parted)
    if not words or words[0] == "ask" or _HARMLESS_END.fullmatch(words[-1]):
        return False
    joined = "".join(words)
    return any(word in joined for word in _ANYWHERE) or any(map(_WORD.fullmatch, words))


def is_secret(name: str) -> bool:
    """Whether what stands behind this name must not be shown: `--etcd-s3-secret-key`, `gelf-pass`, `K3S_TOKEN`."""
    return _judged(name[-_LONGEST:])


def holds_secrets(name: str) -> bool:
    """Whether all in the table or list of this name is secret: also `header` (containerd's hosts.toml), which in a
    sentence is a word like others.
    """
    return is_secret(name) or re.search(r"(?i)(?<![a-z])headers?[\"'\]\s]*$", name) is not None


def is_plain(value: str) -> bool:
    """Whether a value is a switch or nothing, and may stay beside a secret's name."""
    return value.strip().lower() in PLAIN
