"""gpunode as a person runs it: on the host itself, or from this machine over SSH; and what it must leave alone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .host import Host, Result

WATCHED = "/etc /usr/share/keyrings /var/lib/dpkg/status /usr/lib/systemd/system"
UNITS = "docker containerd nvidia-persistenced ssh"


@dataclass(frozen=True)
class Controller:
    """Where gpunode is typed: `how` is "local" (on the host) or "ssh" (here, with a home directory of its own)."""

    how: str
    home: Path

    def gpunode(self, host: Host, *args: str, timeout: float = 300) -> Result:
        if self.how == "local":
            return host.run(shlex.join(("gpunode", *args)), timeout=timeout)
        argv = (sys.executable, "-m", "gpunode", *args, "--ssh", host.name)
        return subprocess.run(
            argv,
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
            env=self.env(host),
            stdin=subprocess.DEVNULL,
        )

    def env(self, host: Host) -> dict[str, str]:
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700, exist_ok=True, parents=True)
        (ssh / "config").write_text(host.ssh_config_text())
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "VIRTUAL_ENV")}
        return {**kept, "HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state")}


def expect(result: Result, code: int) -> Result:
    said = f"exit {result.returncode}, expected {code}\n{result.stdout}\n--- stderr\n{result.stderr}"
    assert result.returncode == code, said
    return result


def fingerprint_of_state(host: Host) -> str:
    """Every watched file's time, mode, owner and every daemon's pid: equal text means nothing was touched."""
    files = f"find {WATCHED} -printf '%p %T@ %m %u %g %l\\n' | sort"
    pids = f"systemctl show {UNITS} -p Id -p MainPID -p NRestarts -p ActiveEnterTimestampMonotonic"
    return host.nsrun(f"{files}; {pids}", check=True).stdout
