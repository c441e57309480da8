"""Why a script did not begin though the login worked, in the words of the shells, sudos and doas that said no.

sudo is told to speak English (transport/shell.py); sudo-rs and doas speak nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpunode.errors import TransportError
from gpunode.regex import regex
from gpunode.transport.shell import NO_TERMINAL, NOEXEC, password_owners, without_our_words

_REFUSED = "sudo refused the password"
_WANTED = "sudo needs a password"
_PAM_REFUSED = "PAM does not let sudo become root"
# (what it says, what that means, what now); the first that is found. sudo 1.8 to 1.9.17, sudo-rs 0.2.5 and 0.2.15
# (Debian 13 and sid; Ubuntu 25.10 and later have it as `sudo`), doas 6.8.2: each was seen in the real program's output
# or stands in its binary.
_REFUSALS: Sequence[tuple[str, str, str]] = (
    (
        "is not in the sudoers|is not allowed to (execute|run|authenticate)|may not run sudo"
        "|I'm sorry .*I'm afraid I can't do that",
        "sudo does not allow this user to become root",
        "add the user to sudoers, or log in as root or another user with --user",
    ),
    (
        f"must have a tty|{NO_TERMINAL}",
        "sudo wants a terminal (requiretty), and none could be made for it",
        "install script (util-linux, bsdutils) where it is missing; or add 'Defaults:USER !requiretty' with visudo, or "
        "log in as root",
    ),
    (
        "[Aa]ccount validation failure|[Aa]ccount or password is expired|[Pp]assword expired|Account expired",
        "sudo says that this user's account or password is expired or locked",
        "set a new password (passwd USER), look at chage -l USER and faillock --user USER, or log in as root",
    ),
    (
        "Sorry, try again|[Ii]ncorrect (password|authentication) attempt|no password was provided"
        "|Authentication failed, try again|Authentication required but not attempted",
        _REFUSED,
        "give the right one with --ask-become-pass or --become-pass-file; it was tried once",
    ),
    (
        "a password is required|[Aa] terminal is required|[Ii]nteractive authentication is required"
        "|Interaction is required",
        f"{_WANTED}, or does not allow this user to become root",
        "give the password with --ask-become-pass, allow NOPASSWD in sudoers, or log in as root",
    ),
    (
        "PAM error|PAM authentication error|unable to initialize PAM",
        _PAM_REFUSED,
        "give the right password with --ask-become-pass (it is tried once), see whether the account is locked "
        "(faillock --user USER), or log in as root",
    ),
    (
        "no new privileges|must be owned by uid 0|must be setuid root|effective uid is not 0",
        "sudo has no right to become root here",
        "it needs its setuid bit on a file system without nosuid, and no container or service that forbids new "
        "privileges; or log in as root",
    ),
    (
        "unable to open /etc/sudoers|sudoers file not found|invalid configuration|no valid sudoers sources"
        "|unable to initialize policy plugin|cannot open sudoers|sudoers is (world writable|owned by|group writable)",
        "sudo cannot use its sudoers file",
        "check it with visudo -c on the host, or log in as root",
    ),
    (
        NOEXEC,
        "sudo lets the shell run no other program (NOEXEC)",
        "take NOEXEC, or Defaults noexec, off what sudoers allows this user (visudo), or log in as root",
    ),
    (
        "doas: (Authentication|Authorization) (required|failed)|doas: a tty is required",
        "doas wants a password, and takes it only at a terminal",
        "allow it without one ('permit nopass USER' in doas.conf), install sudo, or log in as root",
    ),
    (
        "doas: Operation not permitted|doas: doas is not enabled|doas: not (installed setuid|enabled)"
        "|doas: .*(syntax error|insecure)",
        "doas does not allow this user to become root",
        "add 'permit nopass USER' to doas.conf, or log in as root or another user with --user",
    ),
    (
        r"\b(sudo|doas): (cannot execute: )?Permission denied",
        "this user may not start sudo",
        "log in as root or as a user who may: ls -lL $(command -v sudo) shows its mode and group",
    ),
    (
        r"sudo\S*:? (command )?not found|Unknown command:? '?sudo|sudo: No such file",
        "the host has no sudo and no doas that this user can run",
        "log in as root, or install sudo",
    ),
    (
        r"\bsh\S*:? (command )?not found|Unknown command:? '?sh\b",
        "the host has no sh in its PATH",
        "gpunode needs a POSIX sh on the host; install one (busybox has it)",
    ),
)
_READ_CHARACTERS = 4000  # of a host's words, which may have no end, so many are searched
_NO_TERMINAL = regex(rb"must have a tty")


def not_started(target: str, code: int, stdout: bytes | bytearray, stderr: bytes | bytearray) -> TransportError:
    """Why the login worked and the script did not begin, as far as the host's own output tells.

    `code` is its exit status; -1 for a signal, or when nobody knows.
    """
    output = (_one_line(bytes(stderr)) or _one_line(bytes(stdout)))[-_READ_CHARACTERS:]
    status = f"exit status {code}" if code >= 0 else "no exit status"
    evidence = f"it answered {output[-500:]!r} with {status}" if output else f"no output, {status}"
    for pattern, problem, remedy in _REFUSALS:
        if re.search(pattern, output):
            if problem == _REFUSED and (owner := _another_owner(stderr)):
                problem, remedy = _whose(owner)
            return TransportError(f"{target}: {problem}", evidence=evidence, remedy=remedy)
    return TransportError(
        f"{target}: the login succeeded, but the login shell runs no commands",
        evidence=evidence,
        remedy="give the user a real shell (usermod -s /bin/sh USER), or log in as another user with --user",
    )


def counted(error: TransportError) -> bool:
    """Whether `error`, of `not_started`, says that a password was tried and not taken."""
    return any(words in error.problem for words in (_REFUSED, _PAM_REFUSED))


def unanswered(error: TransportError) -> bool:
    """Whether `error`, of `not_started`, says that sudo wanted a password and was given none."""
    return _WANTED in error.problem


def wants_terminal(stderr: bytes | bytearray) -> bool:
    """sudo refused for want of a terminal, before it asked for any password (requiretty in sudoers)."""
    return _NO_TERMINAL.search(stderr[-_READ_CHARACTERS:]) is not None


def _another_owner(stderr: bytes | bytearray) -> str:
    """Whose password sudo asked for, when it is not the user's own (rootpw, targetpw, runaspw)."""
    owners = (owner for owner, user in password_owners(stderr) if owner != user and not owner.startswith("%"))
    return next(owners, "")


def _whose(owner: str) -> tuple[str, str]:
    return (
        f"sudo refused the password, for it wants {owner}'s, not the user's (rootpw, targetpw or runaspw in sudoers)",
        f"give {owner}'s password with --ask-become-pass or --become-pass-file (one was tried, once), "
        "or take that setting off for this user with visudo",
    )


def _one_line(stream: bytes) -> str:
    """What was said, as one line, without control characters and without what gpunode itself had put in."""
    return re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", without_our_words(stream.decode("utf-8", "replace"))).strip()
