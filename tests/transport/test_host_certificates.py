"""Certificates of hosts: gpunode believes one where ssh does, asked of the same real sshd."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.transport.base import HostKeyRefused
from gpunode.transport.certificates import Malformed, read, refusal, unverified, verify
from gpunode.transport.host_trust import Shown, known
from gpunode.transport.known_hosts import HostKey
from gpunode.transport.ssh import Ssh
from gpunode.transport.ssh_config import SshOptions, SshTarget, resolve
from gpunode.transport.ssh_wire import packed
from tests.transport.certify import certify, public, show_certificate
from tests.transport.conftest import options, target
from tests.transport.sshd import Sshd

Start = Callable[..., Sshd]


def asked(server: Sshd, lines: str, config: str = "", **flags: object) -> str:
    """What came of it: where the host is known, or why it was refused."""
    path = server.directory / "config"
    path.write_text(config)
    ssh = Ssh(target(server), options(server, lines, config=(path,), **flags))
    try:
        way = ssh.run("true", timeout_s=120).way
        assert way is not None
        return f"believed: {way.host_key} in {way.known_in}"
    except TransportError as error:
        return f"{error.problem}; {error.evidence}"
    finally:
        ssh.close()


def believed_by_ssh(server: Sshd) -> bool:
    """The same question to OpenSSH's own client, with the same files."""
    files = server.directory
    words = f"-F {files}/config -i {server.identity} -p {server.port}".split()
    settings = ("BatchMode=yes", "IdentitiesOnly=yes", f"UserKnownHostsFile={files}/known_hosts")
    more = [word for setting in (*settings, "GlobalKnownHostsFile=none") for word in ("-o", setting)]
    found = subprocess.run(
        ("ssh", *words, *more, "127.0.0.1", "true"),
        capture_output=True,
        check=False,
    )
    return found.returncode == 0


ANY = "@cert-authority * {ca}"
BY_KEY = "[127.0.0.1]:{port} {key}"


@dataclass(frozen=True)
class Case:
    known: str  # known_hosts
    said: str = ""  # why it is refused; "": it is believed
    flags: tuple[str, ...] = ("-h",)  # of ssh-keygen
    ca: str = "ed25519"
    names: str = "127.0.0.1"
    stricter: bool = False  # than ssh 9


CASES = {
    "an authority that is known vouches for the host": Case(ANY),
    "by its name without the port": Case("@cert-authority 127.0.0.1 {ca}"),
    "by its name with the port": Case("@cert-authority [127.0.0.1]:{port} {ca}"),
    "not where the line is about other hosts": Case("@cert-authority *.example {ca}", "is not known"),
    "not where a pattern leaves it out": Case("@cert-authority *,![127.0.0.1]:*,!127.0.0.1 {ca}", "is not known"),
    "not where the authority is another": Case("@cert-authority * {other}", "no @cert-authority line"),
    "not where the authority's line is about a key": Case("[127.0.0.1]:{port} {ca}", "has changed"),
    "an authority with an RSA key": Case(ANY, ca="rsa"),
    "an authority with an ECDSA key": Case(ANY, ca="ecdsa"),
    "not with SHA-1": Case(ANY, "signed it with 'ssh-rsa'", flags=("-h", "-t", "ssh-rsa"), ca="rsa"),
    "a user's certificate is no host's": Case(ANY, "a user's certificate", flags=()),
    "not for another name": Case(ANY, "it is for gpu07, gpu08", names="gpu07,gpu08"),
    "not for a name with a pattern": Case(ANY, "it is for 127.0.0.*", names="127.0.0.*", stricter=True),
    "for several names": Case(ANY, names="gpu07,127.0.0.1"),
    "an expired one": Case(ANY, "it expired on", flags=("-h", "-V", "-3d:-2d")),
    "one of tomorrow": Case(ANY, "it is valid from", flags=("-h", "-V", "+1d:+2d")),
    "critical options": Case(ANY, "critical options", flags=("-h", "-O", "critical:x@y=z")),
    "a revoked authority": Case(f"{ANY}\n@revoked * {{ca}}", "is revoked"),
    "an authority that is revoked for this host": Case(
        f"{ANY}\n@revoked 127.0.0.1 {{ca}}", "is revoked", stricter=True
    ),
    "a revoked key": Case(f"{ANY}\n@revoked * {{key}}", "is revoked"),
    "a certificate that is revoked as a line": Case(f"{ANY}\n@revoked * {{certificate}}", "is revoked"),
    "the key is known, and nobody its authority": Case(BY_KEY),
    "the key is known, and its certificate expired": Case(f"{ANY}\n{BY_KEY}", flags=("-h", "-V", "-3d:-2d")),
    "the key is known, and its authority revoked": Case(f"{BY_KEY}\n{ANY}\n@revoked * {{ca}}", "is revoked"),
    "its authority is known, and another key": Case(f"{ANY}\n[127.0.0.1]:{{port}} {{other}}"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_certificate_counts_where_it_does_for_ssh(sshd: Start, case: Case) -> None:
    server = sshd()
    ca = server.keygen("ca", "-t", case.ca, *(("-b", "2048") if case.ca == "rsa" else ()), "-N", "")
    certificate = certify(ca, server.directory / "host", *case.flags, names=case.names)
    show_certificate(server)
    words = {"ca": public(ca), "other": public(server.identity), "key": server.host_key, "port": server.port}
    answer = asked(server, case.known.format(**words, certificate=" ".join(certificate.read_text().split()[:2])))
    assert answer.startswith("believed: ") == (not case.said), answer
    assert case.said in answer
    if not case.stricter:  # OpenSSH 10.3 reads patterns among the names, and no version looks for a port's name twice
        assert believed_by_ssh(server) == (not case.said)


def test_what_vouched_is_said(sshd: Start) -> None:
    server = sshd()
    ca = server.keygen("ca")
    certify(ca, server.directory / "host", "-h")
    show_certificate(server)
    answer = asked(server, f"# one\n@cert-authority * {public(ca)}\n")
    assert "certified by ssh-ed25519 SHA256:" in answer
    assert answer.endswith("/known_hosts:2")


def test_a_certificate_for_no_name_stands_for_no_host(sshd: Start) -> None:
    """ssh before 10.3 takes it for every host; since then, as here, for none."""
    server = sshd()
    ca = server.keygen("ca")
    certify(ca, server.directory / "host", "-h", names="")
    show_certificate(server)
    assert "it names no host" in asked(server, f"@cert-authority * {public(ca)}\n")


def test_a_certificate_that_does_not_count_is_not_remembered_as_a_key(sshd: Start) -> None:
    server = sshd()
    ca = server.keygen("ca")
    certify(ca, server.directory / "host", "-h", "-V", "-3d:-2d")
    show_certificate(server)
    known = f"@cert-authority * {public(ca)}\n"
    assert "it expired on" in asked(server, known, accept_new=True)
    assert (server.directory / "known_hosts").read_text() == known


def test_a_host_without_a_certificate_says_that_one_was_expected(sshd: Start) -> None:
    server = sshd()
    answer = asked(server, f"@cert-authority * {public(server.identity)}\n")
    assert "names an authority for it, and it shows no certificate" in answer


@pytest.mark.parametrize("who", ["the key", "its authority", "its certificate"])
def test_revoked_host_keys_are_held_against_both(sshd: Start, who: str) -> None:
    server = sshd()
    ca = server.keygen("ca")
    certificate = certify(ca, server.directory / "host", "-h")
    show_certificate(server)
    lines = {"the key": server.host_key, "its authority": public(ca), "its certificate": certificate.read_text()}
    revoked = server.directory / "revoked"
    revoked.write_text(lines[who] + "\n")
    known = f"@cert-authority * {public(ca)}\n"
    assert "is revoked" in asked(server, known, f"RevokedHostKeys {revoked}\n")
    assert not believed_by_ssh(server)
    revoked.write_text(public(server.identity) + "\n")
    assert "certified by" in asked(server, known, f"RevokedHostKeys {revoked}\n")
    assert believed_by_ssh(server)


@pytest.mark.parametrize(("line", "counts"), [("serial: 7", False), ("id: host", False), ("serial: 8", True)])
def test_a_binary_list_may_revoke_the_certificate_alone(sshd: Start, line: str, counts: bool) -> None:
    server = sshd()
    ca = server.keygen("ca")
    certify(ca, server.directory / "host", "-h", "-z", "7")
    show_certificate(server)
    (server.directory / "listed").write_text(f"{line}\n")
    command = ("ssh-keygen", "-q", "-k", "-f", "krl", "-s", f"{ca}.pub", "listed")
    subprocess.run(command, check=True, cwd=server.directory)
    config = f"RevokedHostKeys {server.directory}/krl\n"
    answer = asked(server, f"@cert-authority * {public(ca)}\n", config)
    assert ("certified by" if counts else "is revoked") in answer
    assert believed_by_ssh(server) is counts


@pytest.mark.parametrize(
    ("words", "counts"),
    [("rsa-sha2-512", True), ("ecdsa*,ssh-ed25519", False), ("-rsa*", False), ("-ecdsa*", True), ("+ssh-dss", True)],
)
def test_the_algorithms_of_authorities_are_those_of_the_config(sshd: Start, words: str, counts: bool) -> None:
    server = sshd()
    ca = server.keygen("ca", "-t", "rsa", "-b", "2048", "-N", "")
    certify(ca, server.directory / "host", "-h", "-t", "rsa-sha2-512")
    show_certificate(server)
    answer = asked(server, f"@cert-authority * {public(ca)}\n", f"CASignatureAlgorithms {words}\n")
    assert ("certified by" in answer) == counts, answer
    if "dss" not in words:  # OpenSSH 10 has no DSA, and does not read the line
        assert believed_by_ssh(server) == counts


def test_an_alias_is_the_name_that_counts_and_has_no_port(sshd: Start) -> None:
    server = sshd()
    ca = server.keygen("ca")
    certify(ca, server.directory / "host", "-h", names="rack7")
    show_certificate(server)
    assert "certified by" in asked(server, f"@cert-authority rack7 {public(ca)}\n", "HostKeyAlias Rack7\n")
    assert believed_by_ssh(server)
    server.extra = ""
    server.stop()
    server.start()
    assert "known_hosts:1" in asked(server, f"rack7 {server.host_key}\n", "HostKeyAlias Rack7\n")
    assert believed_by_ssh(server)


@pytest.mark.parametrize(
    "kind", [("rsa", "-b", "2048"), ("ecdsa",), ("ecdsa", "-b", "521")], ids=["rsa", "p256", "p521"]
)
def test_host_keys_of_every_kind_may_have_one(sshd: Start, kind: tuple[str, ...]) -> None:
    server = sshd()
    ca = server.keygen("ca")
    for name in ("host", "host.pub"):
        (server.directory / name).unlink()
    server.keygen("host", "-t", *kind, "-N", "")
    certify(ca, server.directory / "host", "-h")
    show_certificate(server)
    assert "certified by" in asked(server, f"@cert-authority * {public(ca)}\n")


def test_a_jump_host_may_have_one_too(sshd: Start) -> None:
    bastion, inner = sshd(), sshd()
    ca = bastion.keygen("ca")
    for server in (bastion, inner):
        certify(ca, server.directory / "host", "-h")
        show_certificate(server)
    (inner.directory / "id.pub").write_text((bastion.directory / "id.pub").read_text())
    flags = options(bastion, f"@cert-authority * {public(ca)}\n", jump=f"127.0.0.1:{bastion.port}")
    ssh = Ssh(SshTarget("127.0.0.1", target(inner).user, inner.port), flags)
    assert ssh.run("echo in", timeout_s=120).stdout == b"in\n"
    ssh.close()


def blob(path: Path) -> bytes:
    return base64.b64decode(path.read_text().split()[1])


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    server = Sshd(tmp_path_factory.mktemp("genuine"))
    return blob(certify(server.keygen("ca"), server.keygen("host"), "-h"))


def test_what_a_certificate_says(genuine: bytes) -> None:
    certificate = read(genuine)
    verify(certificate)
    assert (certificate.id, certificate.principals, certificate.kind) == ("host", ("127.0.0.1",), 2)
    assert unverified(certificate) == ""
    assert refusal(certificate, "127.0.0.1") == ""
    assert refusal(certificate, "127.0.0.2") == "it is for 127.0.0.1, not for 127.0.0.2"


def test_no_byte_of_a_certificate_can_be_changed(genuine: bytes) -> None:
    """Wherever it is, the certificate is not read any more, or its signature is not its authority's."""
    authority = read(genuine).authority
    for place in range(len(genuine)):
        changed = bytearray(genuine)
        changed[place] ^= 1
        try:
            certificate = read(bytes(changed))
        except Malformed:
            continue
        if certificate.authority != authority or unverified(certificate):
            continue  # one that nobody names
        with pytest.raises(Malformed):
            verify(certificate)


@pytest.mark.parametrize("authority", [b"", b"\0\0\0", b"\0\0\0\1\xff"], ids=["empty", "cut off", "of no text"])
def test_a_certificate_whose_authority_is_no_key_is_none(genuine: bytes, authority: bytes) -> None:
    signer = read(genuine).authority.blob
    with pytest.raises(Malformed):
        read(genuine.replace(packed([signer]), packed([authority])))


def test_a_certificate_that_is_cut_off_or_goes_on_is_none(genuine: bytes) -> None:
    for size in range(len(genuine)):
        with pytest.raises(Malformed):
            read(genuine[:size])
    with pytest.raises(Malformed):
        read(genuine + b"\0")


def trusted(directory: Path, name: str, certificate: bytes) -> str:
    """Whether a host of that name is believed by this certificate; sshd itself would show no forged one."""
    known_hosts = directory / "known_hosts"
    known_hosts.write_text(f"@cert-authority * {public(directory / 'ca')}\n{name} {public(directory / 'host')}\n")
    hop = resolve(SshTarget(name), SshOptions(known_hosts=(known_hosts,), home=directory), lambda _: {})
    key = HostKey("ssh-ed25519", base64.b64decode(public(directory / "host").split()[1]))
    return known(name, hop, Shown(key, certificate), accept_new=True).where


def test_a_signature_that_is_not_the_authoritys_ends_it(tmp_path: Path) -> None:
    """Even where the plain key is known, and for accept-new: who shows such a certificate is no sane host."""
    server = Sshd(tmp_path)
    genuine = blob(certify(server.keygen("ca"), server.keygen("host"), "-h"))
    forged = genuine.replace(b"127.0.0.1", b"127.0.0.2")
    assert trusted(tmp_path, "127.0.0.1", genuine).endswith("known_hosts:1")
    with pytest.raises(HostKeyRefused, match="is not genuine") as caught:
        trusted(tmp_path, "127.0.0.2", forged)
    assert "its signature is not its authority's" in caught.value.evidence
    with pytest.raises(HostKeyRefused, match="is not genuine"):
        trusted(tmp_path, "127.0.0.1", genuine[:-1])


def test_a_certificate_about_another_key_ends_it(tmp_path: Path) -> None:
    server = Sshd(tmp_path)
    server.keygen("host")
    with pytest.raises(HostKeyRefused, match="is not genuine") as caught:
        trusted(tmp_path, "127.0.0.1", blob(certify(server.keygen("ca"), server.keygen("other"), "-h")))
    assert "another key" in caught.value.evidence
