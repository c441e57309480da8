"""Certificates as ssh-keygen makes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.transport.sshd import Sshd


def certify(ca: Path, key: Path, *options: str, names: str = "127.0.0.1") -> Path:
    """KEY-cert.pub, signed by `ca`; `options` as of ssh-keygen, -h for a host's. `names` "": for nobody."""
    listed = ("-n", names) if names else ()
    public = key.with_name(key.name + ".pub")
    command = ("ssh-keygen", "-q", "-s", str(ca), "-I", key.name, *listed, *options, str(public))
    subprocess.run(command, check=True, capture_output=True)
    return key.with_name(f"{key.name}-cert.pub")


def public(key: Path) -> str:
    """Type and base64 of a key's public half."""
    return " ".join(key.with_name(key.name + ".pub").read_text().split()[:2])


def show_certificate(server: Sshd) -> None:
    """Start it again, with its certificate."""
    server.stop()
    server.extra += f"\nHostCertificate {server.directory}/host-cert.pub"
    server.start()
