"""How a script travels to a POSIX sh through whatever stands in the way: login shells, rc files, sudo.

The script becomes one line of printable ASCII (`printf %b` escapes), because csh breaks at newlines and `!` inside
quotes, fish reads `\\\\` and `\\'` there, and `read -r` reads byte by byte in every sh. Marks before and after the
script's output say where it begins and ends (transport/answer.py); no begin mark means the script never started.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gpunode.errors import TransportError
from gpunode.transport.secret import Secret

PROMPT = "[gpunode] sudo password: "
ARGUMENT_LIMIT_BYTES = 100_000  # Linux allows 128 KiB an argument (MAX_ARG_STRLEN); the login shell gets the whole line

# The token is the host's own, new for every script, and in no argument list: a local user who could read it there
# might print an end mark into something that the script quotes. The kernel's uuid costs no process.
_PREPARE = (
    # Non-interactive logins often lack sbin; LC_ALL=C so that tools print the language their parsers read.
    "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C; export PATH LC_ALL; "
    "unset gpunode_token gpunode_script gpunode_code; "
    "{ read -r gpunode_token </proc/sys/kernel/random/uuid; } 2>/dev/null || "
    "gpunode_token=$(od -An -vtx1 -N16 /dev/urandom | tr -cd 0-9a-f); "
    r'printf "\036gpunode-begin %s\n" "$gpunode_token"; printf "\036gpunode-begin %s\n" "$gpunode_token" >&2; '
)
# A shell of its own, so that exit, exec, a syntax error or a signal end the script and not what reports its end.
_EVALUATE = (
    r'(unset gpunode_token; eval "$(printf %b "$gpunode_script")"); gpunode_code=$?; '
    r'printf "\036gpunode-end %s %d\n" "$gpunode_token" "$gpunode_code" >&2; '
    r'printf "\036gpunode-end %s %d\n" "$gpunode_token" "$gpunode_code"; exit "$gpunode_code"'
)
_FROM_ARGUMENT = _PREPARE + "gpunode_script=$1; shift; " + _EVALUATE
# Lines that are not the script are skipped: an rc file may have eaten the first one, or only half of it.
_FROM_STDIN = (
    _PREPARE
    + "until IFS= read -r gpunode_script || exit 95; "
    + "case $gpunode_script in gpunode-script:*) true;; *) false;; esac; do :; done; "
    + "gpunode_script=${gpunode_script#gpunode-script:}; "
    + _EVALUATE
)
_PLAIN = re.compile(rb"[^ -~]|[\\'!]")
_SHORT = {b"\n": b"\\n", b"\t": b"\\t"}


def encode(script: str) -> str:
    """The script as one line that is safe in single quotes in sh, bash, zsh, csh and fish; `printf %b` decodes it."""
    raw = script.encode("utf-8", "surrogateescape")
    return _PLAIN.sub(lambda m: _SHORT.get(m[0], b"\\0%03o" % m[0][0]), raw).decode("ascii")


@dataclass(frozen=True)
class Delivery:
    """One script, ready to go: the command to start and what to write to its stdin."""

    argv: tuple[str, ...]
    payload: bytes
    asks: bool = False  # sudo may ask for the password first: nothing is written before it asked or the script began

    @property
    def in_argument(self) -> bool:
        return not self.payload

    @property
    def line(self) -> str:
        """For a login shell. No argument holds a quote, a newline or `!`, so single quotes are enough everywhere."""
        return " ".join(f"'{word}'" if shlex.quote(word) != word else word for word in self.argv)


def deliver(
    script: str, stdin: bytes, *, become: bool = False, password: bool = False, argument: bool = True
) -> Delivery:
    """Choose the way in: in the argument when nothing follows (saves a round trip), else on stdin.

    sudo writes its command line to the system log, so with sudo the script always goes over stdin. `argument` False:
    never in the argument, for a login shell that cuts long words.
    """
    text = encode(script)
    if argument and not become and not stdin and len(text) <= ARGUMENT_LIMIT_BYTES:
        return Delivery(("sh", "-c", _FROM_ARGUMENT, "gpunode", text), b"")
    payload = b"\ngpunode-script:" + text.encode("ascii") + b"\n" + stdin
    if not become:
        return Delivery(("sh", "-c", _FROM_STDIN), payload)
    sudo = ("sudo", "-S", "-p", PROMPT) if password else ("sudo", "-n")
    return Delivery((*sudo, "sh", "-c", _FROM_STDIN), payload, asks=password)


class StdinScript:
    """What to send on stdin, and when. The password is sent once, when sudo asks; a second prompt ends it."""

    def __init__(self, delivery: Delivery, password: Secret | None = None) -> None:
        self._delivery = delivery
        self._password = password
        self._answered = False
        self.ended = False  # nothing more will be sent

    def next(self, began: bool, output: bytes | bytearray) -> bytes:
        """Bytes to send now, when the script began or not, and sudo's `output` on stderr so far."""
        if self.ended:
            return b""
        if not self._delivery.asks or began:
            self.ended = True
            return self._delivery.payload
        asked = output.count(PROMPT.encode())
        if asked and not self._answered and self._password is not None:
            self._answered = True
            return self._password.reveal().encode() + b"\n"
        # One try only: three wrong ones lock the account where faillock watches.
        self.ended = asked > 1
        return b""


# What sudo, with LC_ALL unset on the far side, prints in English; other languages fall through to the last sentence.
_REFUSALS: Sequence[tuple[str, str, str]] = (
    (
        "is not in the sudoers|is not allowed to (execute|run)",
        "sudo does not allow this user to become root",
        "add the user to sudoers, or log in as root or another user with --user",
    ),
    (
        "must have a tty",
        "sudo wants a terminal (requiretty), and gpunode works without one",
        "add 'Defaults:USER !requiretty' with visudo, or log in as root",
    ),
    (
        "Sorry, try again|incorrect password|no password was provided",
        "sudo refused the password",
        "give the right one with --ask-become-pass or --become-pass-file; it was tried once",
    ),
    (
        "a password is required|a terminal is required",
        "sudo needs a password, or does not allow this user to become root",
        "give the password with --ask-become-pass, allow NOPASSWD in sudoers, or log in as root",
    ),
    (
        r"sudo\S*:? (command )?not found|Unknown command:? '?sudo|sudo: No such file",
        "the host has no sudo",
        "log in as root, or install sudo",
    ),
    (
        r"\bsh\S*:? (command )?not found|Unknown command:? '?sh\b",
        "the host has no sh in its PATH",
        "gpunode needs a POSIX sh on the host; install one (busybox has it)",
    ),
)


def not_started(target: str, code: int, stdout: bytes | bytearray, stderr: bytes | bytearray) -> TransportError:
    """Why the login worked and the script did not begin, as far as the host's own output tells."""
    output = _words(bytes(stderr)) or _words(bytes(stdout))
    evidence = f"it answered {output!r} with exit status {code}" if output else f"no output, exit status {code}"
    for pattern, problem, remedy in _REFUSALS:
        if re.search(pattern, output):
            return TransportError(f"{target}: {problem}", evidence=evidence, remedy=remedy)
    return TransportError(
        f"{target}: the login succeeded, but the login shell runs no commands",
        evidence=evidence,
        remedy="give the user a real shell (usermod -s /bin/sh USER), or log in as another user with --user",
    )


def _words(stream: bytes) -> str:
    """The last 500 characters as one line, without the prompt and control characters."""
    text = stream.decode("utf-8", "replace").replace(PROMPT, "")
    return re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", text).strip()[-500:]
