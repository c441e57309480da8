"""Which names hold secrets: of keys, flags, environment variables and headers."""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from gpunode.regex import regex

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
    "storagekey",
    "sharedkey",
    "certificatekey",  # kubeadm's, which decrypts a cluster's certificates
    "keydata",  # client-key-data of a kubeconfig
)
# Words of their own: "gelf-pass", "auths", "pwd".
_WORD = regex(r"pass|pwd|pw|userpwd|passcode|auths?|oauth|bearer|authorization|cookies?|creds?|psk|sas|sig|jwt|otp")
# Ends of names whose value is a place or a switch, though a word of secrets stands before it.
_HARMLESS_END = regex(r"files?|path|dir|stdin|plugins?|ttl|timeout|type|mode|enabled")
# Values that reveal nothing: switches and empty ones.
PLAIN = frozenset(("", "true", "false", "null", "yes", "no", "on", "off", "none", "~", "{}", "[]"))
_ESCAPE = regex(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U([0-9A-Fa-f]{8})|\r?\n[ \t]*|[^\r\n])")
_SPACES = "abefnrtv0N_LP "  # \n, \t, YAML's \_: none of them is a letter of a name
_LONGEST = 256  # characters of a name; of a longer one only the end is checked


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    words = re.findall(r"[a-z0-9]+", parted)
    if not words or words[0] == "ask" or _HARMLESS_END.fullmatch(words[-1]):
        return False
    joined = "".join(words)
    return any(word in joined for word in _ANYWHERE) or any(map(_WORD.fullmatch, words))


def is_secret(name: str) -> bool:
    """Whether what stands behind this name must not be shown: `--etcd-s3-secret-key`, `gelf-pass`, `K3S_TOKEN`.

    A name with escapes is checked as it is written and as a parser reads it: `to\\u006ben`, `to\\x6ben`.
    """
    return _names_secret(name[-_LONGEST:]) or ("\\" in name and _names_secret(unescaped(name)[-_LONGEST:]))


def unescaped(name: str) -> str:
    """The escapes of JSON, TOML and YAML resolved, all three at once."""
    return _ESCAPE.sub(_said, name)


def _said(escape: re.Match[str]) -> str:
    if number := escape[1] or escape[2] or escape[3]:
        code = int(number, 16)
        return chr(code) if code <= sys.maxunicode else ""
    return "" if escape[0][1].isspace() and escape[0][1] != " " else " " if escape[0][1] in _SPACES else escape[0][1]


def holds_secrets(name: str) -> bool:
    """Whether all in the table or list of this name is secret: also `header` (containerd's hosts.toml), which in a
    sentence is a word like others.
    """
    return is_secret(name) or re.search(r"(?i)(?<![a-z])headers?[\"'\]\s]*$", unescaped(name)) is not None


def is_plain(value: str) -> bool:
    """Whether a value is a switch or nothing, and may be shown next to a secret's name."""
    return value.strip().lower() in PLAIN
