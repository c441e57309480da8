"""The fleet as a client sees it: addresses, a key, a known_hosts file, and the wire's counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from tests.bench.fleet.far_side import FLEETS

LONG, SHORT = (subnet.removesuffix(".0.0/16") for subnet in FLEETS)  # 50 ms and 0 ms there and back
RTT_S = 2 * FLEETS[f"{LONG}.0.0/16"]

# Only keys, no PAM (this machine's accounts are not what is measured), and as many logins at once as come.
_CONFIG = """HostKey {0}/host
PidFile none
AuthorizedKeysFile {0}/id.pub
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 20000:100:20000
PrintMotd no
PrintLastLog no
LogLevel ERROR
Subsystem sftp internal-sftp
"""


class Fleet:
    """Within `with` it answers. Its directory is a HOME whose ~/.ssh lets ssh, Ansible and gpunode in as root."""

    def __enter__(self) -> Fleet:
        self._directory = tempfile.TemporaryDirectory(prefix="gpunode-bench-")
        self.home = Path(self._directory.name)
        self.identity = self.home / "id"
        for name in ("host", "id"):
            subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.home / name)), check=True)
        (self.home / "sshd_config").write_text(_CONFIG.format(self.home))
        self._host_key = " ".join((self.home / "host.pub").read_text().split()[:2])
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700)
        self.known_hosts = ssh / "known_hosts"
        lines = ("User root", f"IdentityFile {self.identity}", f"UserKnownHostsFile {self.known_hosts}")
        self.config = ssh / "config"  # ssh itself asks passwd where home is, and must be told of this one
        self.config.write_text("\n  ".join(("Host *", *lines, "IdentitiesOnly yes\n")))
        argv = (sys.executable, "-m", "tests.bench.fleet.far_side", str(self.home))
        self._far = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._far.stdout is not None
        if self._far.stdout.readline() != "ready\n":
            raise RuntimeError("the fleet's far side did not come up; it says why above")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._far.communicate()  # closes its stdin, and it ends
        self._directory.cleanup()

    @staticmethod
    def addresses(subnet: str, count: int) -> tuple[str, ...]:
        """LONG.1.1, LONG.1.2 ...: each a host of its own to a client."""
        return tuple(f"{subnet}.{1 + number // 250}.{1 + number % 250}" for number in range(count))

    def trust(self, hosts: tuple[str, ...], others: int = 0) -> None:
        """known_hosts: these hosts' lines, behind `others` lines of hosts that nobody asks for."""
        lines = [f"host{number}.example.org {self._host_key}\n" for number in range(others)]
        self.known_hosts.write_text("".join([*lines, *(f"{host} {self._host_key}\n" for host in hosts)]))

    def environment(self) -> dict[str, str]:
        """For a client: this HOME, and no agent."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
        state = {"XDG_STATE_HOME": str(self.home / "state"), "ANSIBLE_HOME": str(self.home / "ansible")}
        return {**kept, **state, "HOME": str(self.home)}

    def counts(self) -> dict[str, int]:
        """What went over the wire since the last time: connections, turns (round trips), packets, bytes sent."""
        assert self._far.stdin is not None
        assert self._far.stdout is not None
        self._far.stdin.write("counts\n")
        self._far.stdin.flush()
        found: dict[str, int] = json.loads(self._far.stdout.readline())
        return found
