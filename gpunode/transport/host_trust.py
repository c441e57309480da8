"""Whether a host is who it should be: the key or certificate that it shows, held against known_hosts as ssh does.

A certificate of an authority that a @cert-authority line names for this host is enough, where it stands for the host.
Any other is set aside, as ssh does, and the plain key in it has to be known; why it was set aside is then said.
"""

from __future__ import annotations

from gpunode.transport import known_hosts, ssh_errors
from gpunode.transport.certificates import Certificate, Malformed, read, refusal, unverified, verify
from gpunode.transport.known_hosts import HostKey, KnownHosts, KnownKey, Trust, Verdict
from gpunode.transport.revoked_keys import revoked
from gpunode.transport.ssh_config import Hop
from gpunode.transport.ssh_wire import Fields
from gpunode.values import dataclass


@dataclass(frozen=True)
class Shown:
    """What a host showed, and signed the key exchange with."""

    key: HostKey
    certificate: bytes | None = None  # about that key


@dataclass(frozen=True)
class Known:
    key: str  # "ssh-ed25519 SHA256:...", and whose certificate was enough
    where: str  # "/root/.ssh/known_hosts:12"


def known(target: str, hop: Hop, shown: Shown, *, accept_new: bool) -> Known:
    """Why this host is believed. Raises HostKeyRefused, and TransportError for files that cannot be read."""
    lines = lines_for(hop)
    certificate = _certificate(target, hop, shown)
    keys = (shown.key, *((certificate.authority,) if certificate else ()))
    for key in (*keys, *_whole(shown)):
        if hop.revoked_keys is not None and (line := revoked(hop.revoked_keys, key)):
            raise ssh_errors.revoked_key(target, hop, key, (line,))
    if found := lines.revocations(hop.key_names, keys):
        raise ssh_errors.revoked_key(target, hop, found[0].key, found)
    note, may_add = "", accept_new
    if certificate is not None:
        authority = _authority(lines, hop, certificate)
        fault = _fault(hop, certificate, authority)
        if authority is not None and not fault:
            return Known(f"{shown.key}, certified by {authority.key}", authority.where)
        note, may_add = f"its certificate does not count: {fault}", accept_new and authority is None
    return _known_by_key(target, hop, shown.key, lines, note, may_add=may_add)


def lines_for(hop: Hop) -> KnownHosts:
    return known_hosts.load((*hop.user_known_hosts, *hop.system_known_hosts))


def key_types(hop: Hop) -> set[str]:
    """Of the keys under which the host is known."""
    lines = lines_for(hop)
    named = (lines.keys(name) for name in hop.key_names)
    return {known.key.type for known in next(filter(None, named), ())}


def _whole(shown: Shown) -> tuple[HostKey, ...]:
    """The certificate itself: a binary list may have its serial number or its name, and neither of its keys."""
    if shown.certificate is None:
        return ()
    return (HostKey(Fields(shown.certificate).string().decode("ascii", "replace"), shown.certificate),)


def _certificate(target: str, hop: Hop, shown: Shown) -> Certificate | None:
    """One that is malformed, or that its authority did not sign, ends it, as in ssh: a sane host shows none such."""
    if shown.certificate is None:
        return None
    try:
        certificate = read(shown.certificate)
        if certificate.key != shown.key:
            raise Malformed("it is about another key than the one that the host signed with")
        if not unverified(certificate):
            verify(certificate)
    except Malformed as error:
        raise ssh_errors.bad_certificate(target, hop, shown.key, str(error)) from error
    return certificate


def _authority(lines: KnownHosts, hop: Hop, certificate: Certificate) -> KnownKey | None:
    named = lines.authorities_for(hop.key_names)
    return next((line for line in named if line.key.blob == certificate.authority.blob), None)


def _fault(hop: Hop, certificate: Certificate, authority: KnownKey | None) -> str:
    if authority is None:
        return f"no @cert-authority line about this host has its authority, {certificate.authority}"
    if fault := unverified(certificate) or refusal(certificate, hop.key_names[-1]):
        return f"{fault} ({authority.where} names its authority)"
    if not _may_sign(certificate.signed_with, hop.ca_algorithms):
        return f"CASignatureAlgorithms in the ssh config does not allow {certificate.signed_with}"
    return ""


def _may_sign(algorithm: str, words: str) -> bool:
    """`words` is a list of patterns, or changes the usual one: with + and ^ something is added, with - taken out."""
    if words[:1] in ("", "+", "^"):
        return True
    if words.startswith("-"):
        return not known_hosts.matches(words[1:], algorithm)
    return known_hosts.matches(words, algorithm)


def _known_by_key(target: str, hop: Hop, key: HostKey, lines: KnownHosts, note: str, *, may_add: bool) -> Known:
    name = hop.key_names[0]
    verdict: Verdict = lines.verdict(name, key)
    if verdict.trust is Trust.UNKNOWN:  # ssh then looks without the port, for this very key
        found = (lines.verdict(other, key) for other in hop.key_names[1:])
        verdict = next((one for one in found if one.trust is Trust.KNOWN), verdict)
    if verdict.trust is Trust.UNKNOWN and may_add and hop.user_known_hosts:
        verdict = known_hosts.accept_new(hop.user_known_hosts[0], name, key)
    if verdict.trust is Trust.REVOKED:
        raise ssh_errors.revoked_key(target, hop, key, verdict.known)
    if verdict.trust is Trust.CHANGED:
        raise ssh_errors.changed_key(target, hop, key, verdict.known, note)
    if verdict.trust is Trust.UNKNOWN:
        raise ssh_errors.unknown_key(target, hop, key, note or _no_certificate(lines, hop))
    where = next((line.where for line in verdict.known if line.key.blob == key.blob), "")
    return Known(str(key), where or f"{hop.user_known_hosts[0]}, added by this run")


def _no_certificate(lines: KnownHosts, hop: Hop) -> str:
    named = lines.authorities_for(hop.key_names)
    return f"{named[0].where} names an authority for it, and it shows no certificate" if named else ""
