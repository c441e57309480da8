"""Whom hosts believe in the lab: an ssh key, a certificate authority for the vendor's names, OpenPGP signers."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .host import Host
from .shell import sh
from .storage import cache, locked

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


@dataclass(frozen=True)
class Signer:
    """An OpenPGP key in a keyring of its own."""

    home: Path

    @property
    def fingerprint(self) -> str:
        """40 upper-case hex digits, as --trust-key takes them."""
        listing = self._gpg("--with-colons", "--list-keys")
        return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))

    def armored(self) -> str:
        return self._gpg("--armor", "--export")

    def export(self, path: Path) -> None:
        """Binary, as in /usr/share/keyrings/*.gpg."""
        path.unlink(missing_ok=True)
        self._gpg("--output", str(path), "--export")

    def clearsign(self, source: Path, target: Path) -> None:
        self._sign(source, target, "--clearsign")

    def detach_sign(self, source: Path, target: Path) -> None:
        self._sign(source, target, "--armor", "--detach-sign")

    def _sign(self, source: Path, target: Path, *how: str) -> None:
        target.unlink(missing_ok=True)
        # SHA512: apt in trixie and later verifies with sqv, which refuses weak digests.
        self._gpg("--digest-algo", "SHA512", *how, "--output", str(target), str(source))

    def _gpg(self, *words: str) -> str:
        return sh("gpg", "--homedir", self.home, "--batch", *words)


@dataclass(frozen=True)
class Trust:
    """Everything above, made once on this machine; each run of the lab works with a copy of its own."""

    directory: Path

    @property
    def ssh_key(self) -> Path:
        return self.directory / "id_ed25519"

    @property
    def authority(self) -> Path:
        """The CA's certificate; SSL_CERT_FILE for a client on this side."""
        return self.directory / "ca.pem"

    @property
    def server(self) -> Path:
        """Key and certificate of the web server."""
        return self.directory / "server.pem"

    @property
    def vendor(self) -> Signer:
        """Signs what stands for NVIDIA's repositories."""
        return Signer(self.directory / "vendor")

    @property
    def debian(self) -> Signer:
        """Signs what stands for Debian's archive."""
        return Signer(self.directory / "debian")

    @property
    def stranger(self) -> Signer:
        """Nobody trusts this one."""
        return Signer(self.directory / "stranger")


def establish(names: tuple[str, ...], own: Path) -> Trust:
    """The lab's trust, copied to the directory `own`; `names` are what the web server's certificate is for.

    A copy, because labs run side by side in pid namespaces of their own, where gpg takes another lab's lock on a
    keyring for one whose process is gone, and removes it (dotlock.c of GnuPG 2.2).
    """
    trust = Trust(cache() / "trust")
    with locked("trust"):
        if not (trust.directory / ".done").exists():
            trust.directory.mkdir(parents=True, exist_ok=True)
            _make_ssh_key(trust.ssh_key)
            for signer in (trust.vendor, trust.debian, trust.stranger):
                _make_signer(signer)
            _make_certificates(trust, names)
            (trust.directory / ".done").touch()
        shutil.copytree(trust.directory, own, ignore=shutil.ignore_patterns("S.gpg-agent*", "*.lock", ".#lk*"))
    return Trust(own)


def believe(host: Host, trust: Trust) -> None:
    """The host's TLS clients accept the lab's server; root and the three users accept the lab's ssh key."""
    certificate = trust.authority.read_text()
    host.write("/usr/local/share/ca-certificates/lab.crt", certificate)
    host.write(BUNDLE, host.read(BUNDLE) + certificate)
    public = trust.ssh_key.with_suffix(".pub").read_text()
    for home in (host.path("/root"), *host.path("/home").iterdir()):
        _authorize(home, public)


def _authorize(home: Path, public_key: str) -> None:
    directory = home / ".ssh"
    directory.mkdir(mode=0o700, exist_ok=True)
    keys = directory / "authorized_keys"
    keys.write_text(public_key)
    keys.chmod(0o600)
    for path in (directory, keys):
        os.chown(path, home.stat().st_uid, home.stat().st_gid)


def _make_ssh_key(path: Path) -> None:
    path.unlink(missing_ok=True)
    sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpunode lab", "-f", path)


def _make_signer(signer: Signer) -> None:
    signer.home.mkdir(mode=0o700, exist_ok=True)
    uid = f"gpunode lab {signer.home.name} <lab@example.invalid>"
    sh("gpg", "--homedir", signer.home, "--batch", "--passphrase", "", "--quick-gen-key", uid, "rsa3072", "sign", "10y")


def _make_certificates(trust: Trust, names: tuple[str, ...]) -> None:
    here = trust.directory
    sh(
        "openssl",
        "req",
        "-x509",
        *CURVE,
        "-days",
        "3650",
        "-subj",
        "/CN=gpunode lab CA",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
        cwd=here,
    )
    sh("openssl", "req", *CURVE, "-subj", "/CN=gpunode lab", "-keyout", "server.key", "-out", "server.csr", cwd=here)
    alternatives = ",".join(f"DNS:{name}" for name in (*names, "*.lab"))
    (here / "extensions").write_text(f"subjectAltName={alternatives}\nbasicConstraints=CA:FALSE\n")
    sh(
        "openssl",
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "3650",
        "-extfile",
        "extensions",
        "-out",
        "server.crt",
        cwd=here,
    )
    trust.server.write_text((here / "server.key").read_text() + (here / "server.crt").read_text())
