"""What stands for %h and its like in a value of ssh_config(5), section TOKENS. %C is left as it is."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Mapping

from gpunode.regex import regex
from gpunode.transport.ssh_config_words import escaped

_FILE = "%hikLlnpru"  # %d is the home directory that the flags say (ssh_config.py)
_KNOWN = {
    "hostname": "%h",
    "proxycommand": "%hnpr",
    "proxyjump": "%hnpr",
    "match-exec": "%dhikLlnpru",  # as paramiko calls it
    "identityfile": _FILE,
    "certificatefile": _FILE,
    "identityagent": _FILE,
    "revokedhostkeys": _FILE,
    "userknownhostsfile": _FILE,
}
_TOKEN = regex("%(.)")
# The names of this machine are asked for where a value wants them: the longer one may be a far resolver's.
_HERE: Mapping[str, Callable[[], str]] = {
    "d": lambda: os.path.expanduser("~"),
    "i": lambda: str(os.getuid()),
    "L": lambda: socket.gethostname().partition(".")[0],
    "l": socket.getfqdn,
    "u": getpass.getuser,
}


def expanded(key: str, value: str, settings: Mapping[str, object], typed: str) -> str:
    """`value` of `key` with what its tokens stand for, by the settings so far and the host's name as typed.

    A token that is not known, or not known of this key, stays.
    """
    if "%" not in value or key not in _KNOWN:
        return value
    known = _KNOWN[key]

    def meaning(token: str) -> str:
        if token == "%":
            return token
        if token == "n" or (token == "h" and key == "hostname"):
            return typed
        said = {"h": "hostname", "p": "port", "r": "user", "k": "hostkeyalias"}.get(token)
        if said is None:
            return _HERE[token]()
        if token == "h" and settings.get(said):
            return expanded(said, str(settings[said]), settings, typed)  # Match exec asks while it has its own tokens
        return str(settings.get(said) or {"p": 22, "r": getpass.getuser()}.get(token, typed))

    def put(found_token: str) -> str:
        meant = meaning(found_token)
        return escaped(meant) if key == "userknownhostsfile" else meant

    return _TOKEN.sub(lambda found: put(found[1]) if found[1] in known else found[0], value)
