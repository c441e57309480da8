"""What the user reads when a login fails: the host, what was seen, and the next move."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Sequence

from gpunode.advice import named, typed
from gpunode.errors import TransportError
from gpunode.remedy import Remedy, RepairAction
from gpunode.transport.base import HostKeyRefused, NotReached
from gpunode.transport.known_hosts import HostKey, KnownKey
from gpunode.transport.ssh_config import Hop


def cannot_connect(target: str, hop: Hop, error: OSError) -> NotReached:
    """The TCP connection failed; the reason decides what to check."""
    if isinstance(error, socket.gaierror):
        problem, remedy = "the name does not resolve", f"check the spelling, or `getent hosts {hop.host}` here"
    elif isinstance(error, ConnectionRefusedError):
        problem, remedy = "refuses connections", "start sshd there, or give its port with HOST:PORT or --port"
    elif isinstance(error, TimeoutError):
        problem = f"no answer within {hop.connect_timeout_s:g} s"
        remedy = "check that the host is up and no firewall is between; --connect-timeout waits longer"
    elif error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        problem, remedy = "is not reachable from here", "check the route, or go through another host with --jump"
    else:
        problem, remedy = "cannot be connected to", f"try `{_ssh(hop)}` from here"
    return NotReached(f"{_lead(target, hop)} {problem}", evidence=str(error), remedy=remedy)


def not_ssh(target: str, hop: Hop, error: Exception, said: str = "") -> NotReached:
    """`said`: what came in place of a version."""
    remedy = f"try `{_ssh(hop, '-v')}` from here; a busy sshd (MaxStartups) needs fewer --forks"
    if "Not allowed at this time" in said:  # sshd.c, since OpenSSH 9.8
        remedy = "it refuses this address for a while after failed logins (PerSourcePenalties); wait, then try again"
    return NotReached(
        f"{_lead(target, hop)} accepts the connection, but no SSH session came about",
        evidence=f"it says {said!r}" if said else str(error) or type(error).__name__,
        remedy=remedy,
    )


def unknown_key(target: str, hop: Hop, key: HostKey, note: str = "") -> HostKeyRefused:
    """`note`: what became of its certificate."""
    return HostKeyRefused(
        f"{target}: the host key{_of(target, hop)} is not known",
        evidence=f"it shows {key}{f'; {note}' if note else ''}",
        remedy=f"compare the fingerprint with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub there), then "
        f"accept it with `{_ssh(hop)}` or with --host-key accept-new",
    )


def bad_certificate(target: str, hop: Hop, key: HostKey, why: str) -> HostKeyRefused:
    return HostKeyRefused(
        f"{target}: the host certificate{_of(target, hop)} is not genuine",
        evidence=f"it shows {key} with a certificate that cannot be used: {why}",
        remedy="find out who answers there; on the host `ssh-keygen -Lf` shows the file that HostCertificate names in "
        "its sshd_config",
    )


def changed_key(target: str, hop: Hop, key: HostKey, known: Sequence[KnownKey], note: str = "") -> HostKeyRefused:
    """Never offers to accept: the user must find out first why the key differs."""
    recorded = ", ".join(f"{k.key} ({k.where})" for k in known)
    return HostKeyRefused(
        f"{target}: the host key{_of(target, hop)} has changed; it may be another machine in its place",
        evidence=f"it shows {key}; known is {recorded}{f'; {note}' if note else ''}",
        remedy="find out why (reinstalled? another host at this address?); only when it is explained, remove the old "
        "line with `ssh-keygen -R` and its name, and log in once with ssh to compare the new fingerprint",
    )


def revoked_key(target: str, hop: Hop, key: HostKey, known: Sequence[KnownKey]) -> HostKeyRefused:
    return HostKeyRefused(
        f"{target}: the host key{_of(target, hop)} is revoked",
        evidence=f"{key} is listed as revoked in {', '.join(k.where for k in known)}",
        remedy="do not log in; give the host a new key at its console (ssh-keygen -A), or a certificate of another "
        "authority where it is the authority's key that is revoked",
    )


def login_refused(target: str, hop: Hop, tried: Iterable[str], skipped: Iterable[str], why: str) -> NotReached:
    attempts = ", ".join(tried) or "no key (none was found)"
    left = "".join(f"; not tried: {word}" for word in skipped)
    return NotReached(
        f"{_lead(target, hop)} refuses the login of {hop.user}",
        evidence=f"tried {attempts}{left}; {why}",
        remedy=f"put your public key into {named(hop.user)}'s ~/.ssh/authorized_keys there, or choose another with "
        "--identity or --user; a key with a passphrase is opened by ssh-agent (ssh-add) or --key-pass-file, or at a "
        "terminal where --identity names it; --ask-pass asks for a password",
    )


def lost(target: str, doing: str, error: object = "") -> NotReached:
    return NotReached(
        f"{target}: connection lost {doing}",
        evidence=str(error) or "the connection ended before the exit status was known",
        remedy=Remedy(
            RepairAction.WAIT, "run it again: what was begun on the host is found there and finished or rolled back"
        ),
    )


def config_fault(
    target: str, error: object, remedy: Remedy | str = "correct it; `ssh -G HOST` shows what ssh itself reads"
) -> TransportError:
    return TransportError(
        f"{target}: ~/.ssh/config cannot be read",
        evidence=str(error),
        remedy=remedy,
    )


def _place(target: str, hop: Hop) -> str:
    """Where it was tried, unless the host's name has it: "" | "port 2222" | "10.0.0.7:22"."""
    host = f"[{hop.host}]" if ":" in hop.host else hop.host
    named = target.rpartition("@")[2]
    if named == f"{host}:{hop.port}" or (named == host and hop.port == 22):
        return ""
    return f"port {hop.port}" if named == host else f"{host}:{hop.port}"


def _lead(target: str, hop: Hop) -> str:
    """ "gpu07: 10.0.0.7:22:", or "10.0.0.7:"."""
    place = _place(target, hop)
    return f"{target}: {place}:" if place else f"{target}:"


def _of(target: str, hop: Hop) -> str:
    """ " of 10.0.0.7:22", or nothing."""
    place = _place(target, hop)
    return f" of {place}" if place else ""


def _ssh(hop: Hop, *options: str) -> str:
    return typed("ssh", *options, "-p", str(hop.port), f"{hop.user}@{hop.host}")
