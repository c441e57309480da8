"""Hosts for runs: each an sshd of its own that leads into a mount namespace, where this machine's probe finds a driver
package that a stand-in for apt-get removes. The rest of this machine is read-only there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.transport.sshd import SSHD, Sshd

TOOLS = ("unshare", "nsenter", "dpkg-query", "mount")
DRIVER = """
Package: nvidia-driver
Status: install ok installed
Section: non-free/libs
Maintainer: nobody <nobody@localhost>
Architecture: amd64
Version: 595.91.07-1
Description: stands for a driver
"""
# Waits for the file `go`, so that the test says how long it takes; fails while `fail` is there.
APT_GET = """#!/bin/sh
case " $* " in *" remove "*|*" purge "*) ;; *) exit 0 ;; esac
case " $* " in *" -s "*|*" --simulate "*|*" --print-uris "*) exit 0 ;; esac
echo "$*" >>{here}/ran
while [ ! -e {here}/go ]; do sleep 0.1; done
[ ! -e {here}/fail ] || {{ echo "E: the stand-in for apt-get fails" >&2; exit 100; }}
cat {here}/bare >/var/lib/dpkg/status
"""
ENTER = """
mount --make-rprivate /
mount -t tmpfs none /run
mount --bind /usr /usr
mount --bind {here}/apt-get /usr/bin/apt-get
mount -t tmpfs none /var/lib
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates
cp {here}/status /var/lib/dpkg/status
mount --bind {here} /mnt
mount -t tmpfs none /tmp
mkdir -p {here}
mount --bind /mnt {here}
mount -o remount,bind,ro /
echo ready
exec sleep 3600
"""


@dataclass
class Node:
    """One host; `driver`: it has the package that is to go."""

    name: str
    here: Path
    driver: bool = True
    sshd: Sshd = field(init=False)
    holder: subprocess.Popen[str] = field(init=False)

    def start(self) -> Node:
        self.here.mkdir(parents=True)
        (self.here / "apt-get").write_text(APT_GET.format(here=self.here))
        (self.here / "apt-get").chmod(0o755)
        bare = "Package: base-files\nStatus: install ok installed\nMaintainer: nobody <nobody@localhost>\n"
        bare += "Architecture: amd64\nVersion: 1\nDescription: stands for a system\n"
        (self.here / "bare").write_text(bare)
        (self.here / "status").write_text(bare + (DRIVER if self.driver else ""))
        self.holder = subprocess.Popen(
            ("unshare", "-m", "sh", "-ec", ENTER.format(here=self.here)), stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "ready\n"
        force = self.here / "enter"
        force.write_text(f'#!/bin/sh\nexec nsenter -m -t {self.holder.pid} sh -c "$SSH_ORIGINAL_COMMAND"\n')
        force.chmod(0o755)
        (self.here / "sshd").mkdir()
        self.sshd = Sshd(self.here / "sshd", str(force)).start()
        return self

    def stop(self) -> None:
        self.sshd.stop()
        self.holder.kill()
        self.holder.communicate()

    def go(self) -> None:
        """The stand-in for apt-get may end."""
        (self.here / "go").touch()

    def sh(self, script: str) -> str:
        """What it prints on the host."""
        argv = ("nsenter", "-m", "-t", str(self.holder.pid), "sh", "-c", script)
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout

    @property
    def ran(self) -> list[str]:
        """The commands that changed packages here."""
        path = self.here / "ran"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def logins(self) -> int:
        return (self.here / "sshd" / "log").read_text().count("Accepted publickey")

    @property
    def ssh_config(self) -> str:
        directory = self.here / "sshd"
        (directory / "known_hosts").write_text(f"[127.0.0.1]:{self.sshd.port} {self.sshd.host_key}\n")
        return (
            f"Host {self.name}\n  HostName 127.0.0.1\n  Port {self.sshd.port}\n  User root\n"
            f"  IdentityFile {directory}/id\n  IdentitiesOnly yes\n  UserKnownHostsFile {directory}/known_hosts\n"
        )


@dataclass
class Site:
    """Nodes, and the controller's home."""

    home: Path
    nodes: dict[str, Node] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def add(self, name: str, *, driver: bool = True) -> Node:
        self.nodes[name] = Node(name, self.home / "nodes" / name, driver).start()
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        (ssh / "config").write_text("".join(node.ssh_config for node in self.nodes.values()))
        return self.nodes[name]

    @property
    def runs(self) -> Path:
        return self.home / "state" / "gpunode" / "runs"

    def start(self, *words: str) -> subprocess.Popen[str]:
        self.started.append(self._popen(words, self.home / f"said{len(self.started)}"))
        return self.started[-1]

    def _popen(self, words: Sequence[str], said_path: Path) -> subprocess.Popen[str]:
        env = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home / "state"), "PATH": os.environ["PATH"]}
        with said_path.open("w") as said:
            return subprocess.Popen(
                (sys.executable, "-m", "gpunode", *words),
                env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip

    def gpunode(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        running = self.start(*words)
        out, _ = running.communicate(timeout=300)
        return running.returncode, out, self.said

    @property
    def said(self) -> str:
        """What the last one has said so far, on stderr."""
        return (self.home / f"said{len(self.started) - 1}").read_text()

    def stop(self) -> None:
        for running in self.started:
            running.kill()
            running.wait()
            if running.stdout is not None:
                running.stdout.close()
        for node in self.nodes.values():
            node.stop()

    def run_id(self) -> str:
        (run,) = [path for path in self.runs.iterdir() if (path / "run.json").exists()]
        return run.name


@contextmanager
def site(home: Path) -> Iterator[Site]:
    """Skips where this machine cannot have one."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None] + (["sshd"] if SSHD is None else [])
    if missing or os.geteuid() != 0 or subprocess.run(("unshare", "-m", "true"), check=False).returncode != 0:
        pytest.skip(f"needs root, mount namespaces and {', '.join(missing) or 'a machine that has them'}")
    place = Site(home)
    try:
        yield place
    finally:
        place.stop()


def until(true: Callable[[], object]) -> None:
    """Wait for it, minutes at most."""
    for _ in range(1500):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it never came true")
