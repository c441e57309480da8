"""`python -m tests.lab.escapes`: everything that the lab does to a host, aimed at files that the machine has as well.

test_containment.py runs it in a chroot and looks at the machine around it. Prints what it saw, as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from .containment import NotOurs
from .host import Host
from .lab import Lab, why_not

AIMS = ("/etc/containerd/config.toml", "/etc/docker/daemon.json", "/root/canary", "/var/lib/canary/one")


def main() -> int:
    if reason := why_not():
        print(f"the lab cannot start: {reason}", file=sys.stderr)
        return 1
    with Lab() as lab:
        print(json.dumps(aim(lab.host(tmpfs_root="32M"))))
    return 0


def aim(host: Host) -> dict[str, object]:
    for path in AIMS:
        directory = path.rpartition("/")[0]
        host.nsrun(f"rm -rf {directory}/*; mkdir -p {directory} && echo the lab was here >{path}", check=True)
    host.nsrun("nohup sleep 600 >/root/canary 2>&1 & echo $! >/run/sleeper", check=True)
    host.nsrun("ln -s /etc/docker /srv/link && ln -s ../../../../../../../../root /srv/up", check=True)
    host.write("/srv/link/through-a-link", "the lab was here\n")
    host.write("/srv/up/through-dots", "the lab was here\n")
    host.write("/var/run/../../../../../../../../../../root/out-of-the-root", "the lab was here\n")
    host.nsrun("ls /etc/docker/through-a-link /root/through-dots /root/out-of-the-root", check=True)
    host.fill("/var/ballast")
    seen: dict[str, object] = {
        "in the host": {path: host.exists(path) for path in AIMS},
        "full": host.nsrun("echo more >>/var/more && sync && cat /var/more").returncode != 0,
        "bytes": host.path("/var/ballast").stat().st_size,
    }
    init = host.machine.init_pid()
    host.kill()
    seen["entered when it was dead"] = _enters(host)
    host.start()
    seen["another init after the boot"] = host.machine.init_pid() != init
    seen["entered again"] = _enters(host)
    host.path("/.gpunode-lab-host").write_text("somebody else's")
    seen["entered with another marker"] = _enters(host)
    seen["pid namespace"] = os.readlink("/proc/self/ns/pid")
    return seen


def _enters(host: Host) -> bool:
    with contextlib.suppress(NotOurs):
        return host.nsrun("true").returncode == 0
    return False


if __name__ == "__main__":
    sys.exit(main())
