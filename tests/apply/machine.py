"""A host for tests: the real scripts under a real sh, with gpunode's two directories moved into a temporary one."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpunode.errors import TransportError
from gpunode.transport.base import Completed


@dataclass
class Machine:
    root: Path
    shell: tuple[str, ...] = ("sh",)
    target: str = "testhost"
    lost: int = 0  # how many of the next runs break the connection
    scripts: list[str] = field(default_factory=list)
    reconnects: int = 0

    def run(self, script: str, *, stdin: bytes = b"", timeout_s: float) -> Completed:
        self.scripts.append(script)
        if self.lost:
            self.lost -= 1
            raise TransportError("connection reset")
        begin = time.monotonic()
        done = subprocess.run(
            [*self.shell, "-c", self.moved(script)], input=stdin, capture_output=True, timeout=timeout_s, check=False
        )
        return Completed(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)

    def moved(self, script: str) -> str:
        """The script with gpunode's two directories below `root`."""
        return script.replace("/var/lib/gpunode", str(self.state)).replace("/run/gpunode", str(self.root / "run"))

    def reconnect(self) -> None:
        self.reconnects += 1

    def close(self) -> None:
        pass

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def journal(self) -> str:
        return (self.state / "journal.jsonl").read_text()
