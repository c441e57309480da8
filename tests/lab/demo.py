"""`scripts/demo --lab`: a real Debian host with a fake GPU and stub vendor packages, and the real gpunode on it."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from .host import Host
from .lab import Lab, why_not
from .product_runs import Controller


def main() -> int:
    if reason := why_not():
        print(f"the lab cannot start: {reason}", file=sys.stderr)
        return 1
    with Lab() as lab, tempfile.TemporaryDirectory() as home:
        host = lab.host("debian12", gpu="h100", runtime="docker", name="gpu01")
        me = Controller("ssh", Path(home))
        print("A Debian 12 host, gpu01: real systemd, sshd, apt and docker. The H100 and NVIDIA's packages are stubs.")
        codes = [
            _type(me, host, "detect"),
            _type(me, host, "setup", "--yes", "--reboot", "if-needed", "--trust-key", lab.repo_fingerprint),
            _type(me, host, "check"),
            _type(me, host, "plan", "--trust-key", lab.repo_fingerprint),
        ]
    return max(codes)


def _type(me: Controller, host: Host, *words: str) -> int:
    """One gpunode command as a person types it, its output straight to the terminal."""
    argv = ("gpunode", *words, "--ssh", host.name)
    print(f"\n$ {shlex.join(argv)}", flush=True)
    return subprocess.run(
        (sys.executable, "-m", *argv), env=me.env(host), stdin=subprocess.DEVNULL, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
