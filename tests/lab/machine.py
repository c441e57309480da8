"""The running half of a host: its nspawn process, through boots, reboots and power cuts."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import containment
from .cgroups import kill_cgroup, remove_cgroup
from .network import BRIDGE, delete_port
from .shell import sh

REBOOT_ASKED = 133  # nspawn's exit status under --keep-unit when the host rebooted itself
START_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
# Unified inside, so that docker and systemd agree whatever this machine mounts; no seccomp: dockerd needs keyctl.
ENVIRONMENT = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_SECCOMP": "0"}


class Machine:
    """Starts nspawn, starts it again when the host reboots, and ends exactly the processes it started."""

    def __init__(
        self, name: str, hostname: str, root: Path, cgroup: Path, binds: dict[Path, str], console: Path
    ) -> None:
        self.name = name  # vb-NAME must fit 15 characters
        self.cgroup = cgroup
        self.console = console
        self.boots = 0  # grows by one with each start, reboots included
        self.between_boots: list[Callable[[], None]] = []
        self.binds = binds
        self._root = root
        self._token = secrets.token_hex(16)
        self._init: tuple[int, int, str] | None = None  # nspawn's pid, init's, and when that one started
        self._argv = _nspawn(name, hostname, root, binds)
        self._process: subprocess.Popen[bytes] | None = None
        self._supervisor: threading.Thread | None = None
        self._staying_down = True

    @property
    def is_running(self) -> bool:
        return self._supervisor is not None and self._supervisor.is_alive()

    def start(self) -> None:
        if self.is_running:
            raise RuntimeError(f"{self.name} is running already")
        self._staying_down = False
        marker = self._root / containment.MARKER
        if not marker.is_file() or marker.read_text() != self._token:
            marker.write_text(self._token)
        started = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, args=(started,), daemon=True)
        self._supervisor.start()
        started.wait(START_LIMIT_S)

    def kill(self) -> None:
        """Power off at the wall: no process of the host gets to run again."""
        self._staying_down = True
        kill_cgroup(self.cgroup)
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Orderly shutdown."""
        self._staying_down = True
        self._end(signal.SIGTERM)

    @contextlib.contextmanager
    def door(self) -> Iterator[list[str]]:
        """nsenter's argv into the running host; raises containment.NotOurs where it is not proven to be this one."""
        process = self._process
        if process is None or process.returncode is not None:
            raise containment.NotOurs(f"{self.name} does not run")
        pid = self.init_pid()
        known = self._init if self._init and self._init[:2] == (process.pid, pid) else None
        root = containment.mounted_root(self._root)
        made = containment.Made(process.pid, known[2] if known else None, root, self._token)
        with containment.door(pid, made) as (enter, seen):
            self._init = (process.pid, pid, seen.started)
            yield enter

    def init_pid(self) -> int:
        """Pid, as this machine counts, of the host's systemd; to look at: `door` is what proves it."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        pid = self._process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                return int(child)
        raise RuntimeError(f"{self.name} has no init yet")

    def wait_for_port(self, address: str, port: int, *, after_boot: int = 0, limit_s: float = START_LIMIT_S) -> None:
        """Until sshd greets, on a boot later than `after_boot`."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and self.is_running:
            if self.boots > after_boot and _greets(address, port):
                return
            time.sleep(0.03)
        console = self.console.read_text(errors="replace")[-1500:] if self.console.exists() else ""
        raise TimeoutError(f"{self.name}: no sshd on {address}:{port} within {limit_s:.0f} s; console: {console}")

    def _supervise(self, started: threading.Event) -> None:
        """Own the process from here: --pdeathsig fires when the *thread* that forked it ends."""
        while True:
            process = self._spawn()
            started.set()
            if process.wait() != REBOOT_ASKED or self._staying_down:
                return
            for hook in self.between_boots:
                hook()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.cgroup.mkdir(exist_ok=True)
        enter = f'echo 0 >{self.cgroup}/cgroup.procs && exec "$@"'
        with self.console.open("ab") as console:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "sh", "-c", enter, "sh", *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        self.boots += 1
        return self._process

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self._supervisor is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(how)
            self._supervisor.join(STOP_LIMIT_S)
            if self._supervisor.is_alive():  # would not stop: the wall switch
                kill_cgroup(self.cgroup)
                self._supervisor.join(STOP_LIMIT_S)
        delete_port(self.name)
        remove_cgroup(self.cgroup)
        # A killed nspawn (254 and later) leaves this mount behind, and the next of that name would refuse to start.
        export = Path("/run/systemd/nspawn/unix-export") / self.name
        if os.path.ismount(export):
            sh("umount", export)
            export.rmdir()


def _nspawn(name: str, hostname: str, root: Path, binds: dict[Path, str]) -> list[str]:
    if len(name) > 11:
        raise ValueError(f"{name}: vb-NAME is an interface name of at most 15 characters, so NAME has 11")
    return [
        "systemd-nspawn",
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--machine",
        name,
        "--hostname",
        hostname,
        "--directory",
        str(root),
        f"--network-bridge={BRIDGE}",
        "--capability=all",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        "--bind=/dev/fuse",
        *(f"--bind={outside}:{inside}" for outside, inside in binds.items()),
        "--boot",
    ]


def _greets(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), 0.5) as connection:
            connection.settimeout(5)
            return connection.recv(4).startswith(b"SSH")
    except OSError:
        return False
