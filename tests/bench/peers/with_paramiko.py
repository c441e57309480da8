"""What a script with plain paramiko does: SSHClient, one command at a time, files over SFTP."""

from __future__ import annotations

import shlex
from pathlib import Path

import paramiko


class Script:
    """known_hosts is read once, and a client gets its host's lines: kinder to paramiko than a script usually is."""

    def __init__(self, known_hosts: Path, identity: Path, probe: str) -> None:
        self._known = paramiko.HostKeys(str(known_hosts))
        self._key = paramiko.Ed25519Key.from_private_key_file(str(identity))
        self._probe = f"exec sh -c {shlex.quote(probe)}"

    def check(self, host: str) -> None:
        """One exec."""
        with self._connected(host) as client:
            _run(client, self._probe)

    def unchanged(self, host: str) -> None:
        """One exec, and one file read to be compared."""
        with self._connected(host) as client:
            _run(client, self._probe)
            with client.open_sftp() as files, files.open("/etc/os-release") as file:
                file.read()

    def one_file(self, host: str, path: str, text: bytes) -> None:
        """Two probes, one file written beside itself and renamed, three commands."""
        with self._connected(host) as client:
            _run(client, self._probe)
            _run(client, f"mkdir -p {shlex.quote(str(Path(path).parent))}")
            with client.open_sftp() as files:
                with files.open(f"{path}.new", "wb") as file:
                    file.write(text)
                files.posix_rename(f"{path}.new", path)
            _run(client, f"sync {shlex.quote(path)}")
            _run(client, "true")  # the restart
            _run(client, self._probe)

    def _connected(self, host: str) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        for kind, key in (self._known.lookup(host) or {}).items():
            client.get_host_keys().add(host, kind, key)
        client.connect(host, username="root", pkey=self._key, allow_agent=False, look_for_keys=False, timeout=60)
        return client


def _run(client: paramiko.SSHClient, command: str) -> bytes:
    stdin, stdout, _ = client.exec_command(command)
    stdin.close()
    output = stdout.read()
    if stdout.channel.recv_exit_status():
        raise RuntimeError(f"{command[:60]}: exit status {stdout.channel.recv_exit_status()}")
    return output
