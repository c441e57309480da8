"""CanonicalizeHostname of ssh_config(5): the full name of a host, as this machine's resolver knows it.

Source: OpenSSH, ssh.c (main, resolve_canonicalize, check_follow_cname).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping

from gpunode.regex import regex
from gpunode.transport.known_hosts import matches

_WORDS = {"": "no", "no": "no", "false": "no", "yes": "yes", "true": "yes", "always": "always"}
_ADDRESS = regex(r"[0-9.]+|.*[:%].*")  # what ssh takes for one, though it may not be one that exists
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}


def canonicalizes(settings: Mapping[str, object]) -> str:
    """no | yes | always. Raises ValueError for another word, which ssh does not read either."""
    word = _word(settings, "canonicalizehostname")
    if word.lower() not in _WORDS:
        raise ValueError(f"CanonicalizeHostname {word[:40]!r} is not yes, no or always")
    return _WORDS[word.lower()]


def canonical(host: str, settings: Mapping[str, object]) -> str:
    """The full name of `host`, which is the name or address after HostName; itself where ssh leaves it as it is.

    Raises ValueError where no domain has it and CanonicalizeFallbackLocal is no, or where a number is none.
    """
    if _ADDRESS.fullmatch(host) or (_through_a_proxy(settings) and canonicalizes(settings) != "always"):
        return host
    anchored = host.endswith(".")
    if anchored or host.count(".") <= int(_word(settings, "canonicalizemaxdots") or 1):
        for name in [host] if anchored else _names(host, settings):
            if found := _alias_of(name, settings):
                return _followed(name.removesuffix("."), found, settings)
        if _word(settings, "canonicalizefallbacklocal").lower() in ("no", "false"):
            raise ValueError(f"{host[:80]} is in no domain of CanonicalDomains, and CanonicalizeFallbackLocal is no")
    return _followed(host, _alias_of(host, settings), settings) if _rules(settings) else host


def _through_a_proxy(settings: Mapping[str, object]) -> bool:
    return any(_word(settings, key).lower() not in ("", "none") for key in ("proxyjump", "proxycommand"))


def _names(host: str, settings: Mapping[str, object]) -> Iterator[str]:
    """With a dot at the end: the resolver adds no domain of its own."""
    for domain in _word(settings, "canonicaldomains").split():
        if domain.lower() == "none":
            return
        yield f"{host}.{domain}."


def _alias_of(name: str, settings: Mapping[str, object]) -> str:
    """What the resolver calls `name` itself, at the end of its CNAMEs; "": it knows no such name."""
    family = _FAMILIES.get(_word(settings, "addressfamily").lower(), socket.AF_UNSPEC)
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):  # UnicodeError: a label that is longer than a name may have
        return ""
    return found[0][3].removesuffix(".") or name.removesuffix(".")


def _rules(settings: Mapping[str, object]) -> list[str]:
    return [rule for rule in _word(settings, "canonicalizepermittedcnames").split() if rule.lower() != "none"]


def _followed(name: str, alias: str, settings: Mapping[str, object]) -> str:
    for sources, _, targets in (rule.partition(":") for rule in _rules(settings)):
        if alias and matches(sources, name.lower()) and matches(targets, alias.lower()):
            return alias
    return name


def _word(settings: Mapping[str, object], key: str) -> str:
    value = settings.get(key)
    return value if isinstance(value, str) else ""
