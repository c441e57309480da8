"""Passwords and passphrases: asked for once a run, here and before any host is, or read from a file or descriptor."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpunode.cli.options.groups import LiveOptions
from gpunode.errors import TransportError, UsageError
from gpunode.foreign import read_file
from gpunode.regex import regex
from gpunode.transport.secret import Secret

if TYPE_CHECKING:
    from gpunode.transport.login import LoginPassword
    from gpunode.transport.ssh_config import Hop, SshOptions, SshTarget

FILE_BYTES = 65536
_TRIES = 3  # at a key's passphrase, which nobody counts
_DESCRIPTOR = regex(r"/(?:dev|proc/self)/fd/([0-9]{1,6})")


def become_password(options: LiveOptions) -> Secret | None:
    """Of sudo. Raises UsageError."""
    if options.ask_become_pass and options.become_pass_file:
        raise UsageError("--ask-become-pass and --become-pass-file exclude each other", remedy="choose one")
    if options.become_pass_file:
        return _first_line("--become-pass-file", options.become_pass_file)
    if not options.ask_become_pass:
        return None
    secret = _asked("--ask-become-pass", "Password for sudo: ", "use --become-pass-file FILE")
    if not secret.reveal():
        raise UsageError("the password for sudo is empty", remedy="leave --ask-become-pass out where sudo wants none")
    return secret


def login_password(options: LiveOptions) -> LoginPassword | None:
    """For hosts that take no key of ours; only where it was asked for. Raises UsageError."""
    if not options.ask_pass:
        return None
    from gpunode.transport.login import LoginPassword

    secret = _asked("--ask-pass", "Password for SSH: ", "log in with a key")
    if not secret.reveal():
        raise UsageError("the password for SSH is empty", remedy="leave --ask-pass out to log in with keys alone")
    return LoginPassword(secret)


Reached = Sequence[tuple["SshTarget", "SshOptions"]]  # each host with how it is reached


def unlock_keys(options: LiveOptions, reached: Reached) -> None:
    """Open the private keys with a passphrase: by --key-pass-file, else at the terminal as ssh does.

    Nobody is asked for a key that may not be needed: one that --identity names is, and any where no other key is at
    hand. Raises UsageError.
    """
    given = _first_line("--key-pass-file", options.key_pass_file) if options.key_pass_file else None
    if given is None and not sys.stdin.isatty():
        return
    paths = _locked(reached, every=given is not None)
    if given is None:
        for path in paths:
            _ask_for(path)
    elif paths and sum(_opens(path, given) for path in paths) == 0:
        raise UsageError(
            f"the passphrase in {options.key_pass_file} opens none of your keys",
            evidence=f"it was tried on {', '.join(str(path) for path in paths[:10])}",
            remedy="name the key with --identity, or put its passphrase into the first line of that file",
        )


def _locked(reached: Reached, *, every: bool) -> list[Path]:
    """The keys to open, each once."""
    from gpunode.transport.identities import locked

    found: dict[Path, None] = {}
    seen = set()
    for hop, settings in _hops(reached):
        if (asked := (hop.identities, hop.identities_only, hop.agent)) not in seen:
            seen.add(asked)
            paths, others = locked(hop)
            found.update((p, None) for p in paths if every or not others or p in settings.identities)
    return list(found)


def _hops(reached: Reached) -> list[tuple[Hop, SshOptions]]:
    """As the hosts will be reached. One stands for all where the config names no key for any."""
    from gpunode.transport.ssh_config import parse_target, resolve
    from gpunode.transport.ssh_config_lookup import looked_up, same_keys_for_all

    hops: list[tuple[Hop, SshOptions]] = []
    alike = len({settings for _, settings in reached}) == 1
    with suppress(TransportError, UsageError):  # the host says so when it is its turn
        for target, settings in reached[:1] if alike and same_keys_for_all(reached[0][1]) else reached:
            look = partial(looked_up, options=settings)
            hop = resolve(target, settings, look)
            jumps = [resolve(parse_target(word), settings, look, jump=True) for word in hop.jumps]
            hops += [(one, settings) for one in (hop, *jumps)]
    return hops


def _ask_for(path: Path) -> None:
    question = f"Passphrase for the key {path} (empty: go on without it): "
    for number in range(_TRIES):
        passphrase = _prompted("That does not open it. " * (number > 0) + question)
        if not passphrase.reveal() or _opens(path, passphrase):
            return


def _opens(path: Path, passphrase: Secret) -> bool:
    from gpunode.transport.identities import unlock

    try:
        return unlock(path, passphrase)
    except TransportError:
        return False  # said where the login fails


def _first_line(flag: str, path: Path) -> Secret:
    """Of a file, read once. A descriptor (`/dev/fd/3`) is closed behind it: nothing that is started later has it."""
    try:
        text = read_file(path, FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{flag} {path} cannot be read",
            evidence=getattr(error, "strerror", None) or "it is not UTF-8",
            remedy="name a file whose first line is the password",
        ) from error
    finally:
        _close_descriptor(path)
    first = text.split("\n", 1)[0].removesuffix("\r")  # a password may hold what else ends a line
    if len(text) > FILE_BYTES:
        raise UsageError(f"{flag} {path} is over {FILE_BYTES} bytes")
    if not first:
        raise UsageError(f"{flag} {path} has an empty first line")
    return Secret(first)


def _close_descriptor(path: Path) -> None:
    found = _DESCRIPTOR.fullmatch(str(path))
    if found and int(found[1]) > 2:
        with suppress(OSError):
            os.close(int(found[1]))


def _asked(flag: str, question: str, remedy: str) -> Secret:
    if not sys.stdin.isatty():
        raise UsageError(f"{flag} needs a terminal", remedy=remedy)
    return _prompted(question)


def _prompted(question: str) -> Secret:
    import getpass

    try:
        return Secret(getpass.getpass(question))
    except EOFError:
        return Secret("")
