"""Options of ssh(1) in Ansible's variables: jump hosts are read, what changes nothing is said, the rest refused."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import field

from gpunode.values import dataclass

LONGEST = 4096  # characters
# Of ssh(1): flags that take a word, and those of the others that do not change who is reached, nor as whom.
_WITH_WORD = "BbcDEeFIiJLlmOopQRSWw"
_HARMLESS = "46AaCqTtvnxX"
# Of ssh_config(5): the same. gpunode checks host keys by known_hosts whatever these say.
_HARMLESS_OPTIONS = frozenset({
    "addressfamily", "batchmode", "checkhostip", "ciphers", "compression", "connectionattempts",
    "connecttimeout", "controlmaster", "controlpath", "controlpersist", "forwardagent", "forwardx11",
    "globalknownhostsfile", "gssapiauthentication", "hashknownhosts", "hostkeyalgorithms", "ipqos",
    "kbdinteractiveauthentication", "kexalgorithms", "loglevel", "macs", "passwordauthentication",
    "preferredauthentications", "pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes", "pubkeyauthentication",
    "requesttty", "serveralivecountmax", "serveraliveinterval", "stricthostkeychecking", "tcpkeepalive",
    "updatehostkeys", "userknownhostsfile", "visualhostkey",
})  # fmt: skip


@dataclass
class SshArgs:
    jump: str | None = None  # as --jump takes it
    unread: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def read_ssh_args(text: str) -> SshArgs:
    """`-J bastion`, `-o ProxyJump=bastion`, `-o ProxyCommand="ssh -W %h:%p -q bastion"`."""
    found = SshArgs()
    if len(text) > LONGEST:  # of hostile ones: shlex and flags that stand together take time by the square
        found.refused.append(text)
        return found
    try:
        words = shlex.split(text)
    except ValueError:
        found.refused.append(text)
        return found
    for flag, word in _flags(words):
        _read(found, flag, word)
    return found


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    """("J", "bastion"), ("q", ""); what is no flag has "" for it. Flags may stand together: -qJbastion."""
    left = list(reversed(words))
    while left:
        word = left.pop()
        if not word.startswith("-") or word in ("-", "--"):
            yield "", word
            continue
        for place, flag in enumerate(word[1:], 2):
            if flag in _WITH_WORD:
                yield flag, word[place:] or (left.pop() if left else "")
                break
            yield flag, ""


def _read(found: SshArgs, flag: str, word: str) -> None:
    if flag == "J":
        _jump(found, word, f"-J {word}")
    elif flag == "o":
        key, value = _option(word)
        shown = f"-o {word}"
        if key == "proxyjump":
            _jump(found, value, shown)
        elif key == "proxycommand":
            _jump(found, "none" if value == "none" else _through(value), shown)
        elif key in _HARMLESS_OPTIONS:
            found.unread.append(shown)
        else:
            found.refused.append(shown)
    elif flag and flag in _HARMLESS:
        found.unread.append(f"-{flag}")
    else:
        found.refused.append(f"-{flag} {word}".strip() if flag else word)


def _option(word: str) -> tuple[str, str]:
    """Both spellings of ssh_config(5): "Key=value" and "Key value"."""
    key, _, value = word.replace("=", " ", 1).partition(" ")
    return key.lower(), value.strip()


def _jump(found: SshArgs, jump: str | None, shown: str) -> None:
    if not jump or (found.jump is not None and found.jump != jump):
        found.refused.append(shown)
    else:
        found.jump = jump


def _through(command: str) -> str | None:
    """The jump host of a ProxyCommand that is nothing but `ssh -W %h:%p HOST`; None for any other."""
    try:
        program, *words = shlex.split(command)
    except ValueError:
        return None
    if program.rpartition("/")[2] != "ssh":
        return None
    to, hosts, user, port = "", list[str](), "", ""
    for flag, word in _flags(words):
        if flag == "W":
            to = word
        elif flag == "l":
            user = f"{word}@"
        elif flag == "p":
            port = f":{word}"
        elif not flag:
            hosts.append(word)
        elif flag not in _HARMLESS:
            return None
    return f"{user}{hosts[0]}{port}" if to in ("%h:%p", "[%h]:%p") and len(hosts) == 1 else None
