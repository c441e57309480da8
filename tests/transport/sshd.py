"""A throw-away sshd of the test's own: port, keys and config in a temporary directory, gone afterwards."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@dataclass
class Sshd:
    """`force` stands for the login shell: it is given the command line in $SSH_ORIGINAL_COMMAND."""

    directory: Path
    force: str = ""
    extra: str = ""
    port: int = 0
    password: str = ""  # of whoever runs the tests; in a /etc/shadow that this sshd alone sees
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def identity(self) -> Path:
        return self.directory / "id"

    @property
    def host_key(self) -> str:
        """Type and base64, as known_hosts has them."""
        return " ".join((self.directory / "host.pub").read_text().split()[:2])

    def keygen(self, name: str, *options: str) -> Path:
        path = self.directory / name
        if not path.exists():
            command = ("ssh-keygen", "-q", "-t", "ed25519", "-f", str(path), *(options or ("-N", "")))
            subprocess.run(command, check=True)
        return path

    def start(self) -> Sshd:
        assert SSHD is not None
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # privilege separation wants the empty directory
        for name in ("host", "id"):
            self.keygen(name)
        self.port = self.port or _free_port()
        config = self.directory / "sshd_config"
        config.write_text(
            # sshd keeps the first value of an option, so the test's come first.
            f"{self.extra}\n"
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.directory}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.directory}/id.pub\nStrictModes no\nPermitRootLogin yes\n"
            f"PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            + (f"ForceCommand {self.force}\n" if self.force else "")
        )
        log = (self.directory / "log").open("ab")
        command = (*self._own_passwords(), SSHD, "-D", "-e", "-f", str(config))
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        raise AssertionError((self.directory / "log").read_text())

    def _own_passwords(self) -> tuple[str, ...]:
        if not self.password:
            return ()
        hashed = subprocess.run(
            ("openssl", "passwd", "-6", "-stdin"), input=self.password, capture_output=True, text=True, check=True
        ).stdout.strip()
        (self.directory / "shadow").write_text(f"{getpass.getuser()}:{hashed}:20000:0:99999:7:::\n")
        (self.directory / "pam").write_text(
            "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n"
        )
        binds = " && ".join(
            f"mount --bind {self.directory}/{own} {real}"
            for own, real in (("shadow", "/etc/shadow"), ("pam", "/etc/pam.d/sshd"))
        )
        return ("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{binds} && exec "$@"', "sh")

    def sessions(self) -> list[int]:
        """Processes of this sshd's connections."""
        assert self.process is not None
        return _children(self.process.pid)

    def cut(self) -> None:
        """Kill every connection, as a network or an oom-killer does."""
        for pid in [p for session in self.sessions() for p in (*_sshd_children(session), session)]:
            with suppress(ProcessLookupError):  # it may end by itself meanwhile
                os.kill(pid, 9)

    def stop(self) -> None:
        if self.process is not None:
            self.cut()
            self.process.terminate()
            self.process.wait()
            self.process = None


def _children(pid: int) -> list[int]:
    found = subprocess.run(("ps", "-o", "pid=", "--ppid", str(pid)), capture_output=True, check=False)
    return [int(word) for word in found.stdout.split()]


def _sshd_children(pid: int) -> list[int]:
    """OpenSSH 10 serves a connection in two processes; the inner one outlives its parent. Not the shell below them."""
    names = subprocess.run(
        ("ps", "-o", "pid=,comm=", "--ppid", str(pid)), capture_output=True, text=True, check=False
    ).stdout
    return [int(line.split()[0]) for line in names.splitlines() if line.split()[1].startswith("sshd")]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
