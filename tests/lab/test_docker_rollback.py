"""Whatever keeps dockerd from its new file: all is as it was before, and the daemon's own reason is shown."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .wide import cases

CONFIG, NVIDIA = "/etc/docker/daemon.json", "/usr/bin/nvidia-container-runtime"
TARGET = "/etc/docker/ours/daemon.json"  # CONFIG is a link to it
DROP_IN = "/etc/systemd/system/docker.service.d/fault.conf"
THEIRS = '{\n  "log-driver": "json-file",\n  "runtimes": {"crun": {"path": "/usr/bin/crun"}}\n}\n'
BAD_KEY = THEIRS.replace('"log-driver"', '"no-such-key": true,\n  "log-driver"')
# setupRuntimes finds it, and neither the reading of the file nor `dockerd --validate` does (23 and later).
BAD_OPTION = THEIRS.replace(
    '"crun": {', '"x": {"runtimeType": "io.containerd.runc.v2", "options": {"IoUid": 0.5}}, "crun": {'
)
# A reload that ends the daemon, and a start that is refused while the file says nvidia.
DEADLY = """[Service]
ExecReload=
ExecReload=/bin/sh -c 'grep -q nvidia {config} && kill -KILL $MAINPID || kill -HUP $MAINPID'
ExecStartPre=/bin/sh -c '! grep -q nvidia {config} || {{ echo "failed to start daemon: the test guard"; exit 1; }}'
"""


@dataclass(frozen=True)
class Fault:
    claim: str
    arrange: Callable[[Host], None]
    code: int
    words: str
    mended: Callable[[Host], None]
    only: tuple[str, ...] = ("debian12", "debian13", "debian-sid")


def put(text: str) -> Callable[[Host], None]:
    return lambda host: host.write(TARGET, text, 0o640)


def nothing(host: Host) -> None:
    """The daemon and its files are as `base` left them."""


def drop_in(host: Host, text: str) -> None:
    host.write(DROP_IN, text)
    host.nsrun("systemctl daemon-reload", check=True)


def no_drop_in(host: Host) -> None:
    host.nsrun(
        f"rm {DROP_IN}; systemctl daemon-reload; systemctl reset-failed docker.service docker.socket", check=True
    )


def by_flag(host: Host) -> None:
    host.write("/etc/default/docker", 'DOCKER_OPTS="--default-runtime=runc"\n')
    host.nsrun("systemctl restart docker", check=True)


def not_by_flag(host: Host) -> None:
    host.nsrun("rm /etc/default/docker; systemctl reset-failed docker; systemctl restart docker", check=True)


def broken_before(host: Host) -> None:
    """A key that dockerd does not know, and as many starts as systemd allows."""
    put(BAD_KEY)(host)
    host.nsrun("systemctl reset-failed docker.service docker.socket")
    host.nsrun("systemctl restart docker; for n in 1 2 3 4 5 6; do systemctl start docker; done")
    wait_for(host, "failed")


FAULTS = (
    Fault("a file that is no JSON", put(THEIRS.replace('"log', "log")), 1, "daemon.json:2:3:", put(THEIRS)),
    Fault("a key that docker does not know", put(BAD_KEY), 1, "no-such-key", put(THEIRS)),
    Fault(
        "a runtime whose options are wrong",
        put(BAD_OPTION),
        1,
        "Can't convert 0.5",
        put(THEIRS),
        ("debian13", "debian-sid"),
    ),
    Fault(
        "the runtime's executable is missing",
        lambda host: host.path(NVIDIA).chmod(0o644),
        1,
        f"{NVIDIA} is not there, or cannot be executed",
        lambda host: host.path(NVIDIA).chmod(0o755),
    ),
    Fault("the unit sets the default by flag", by_flag, 4, "--default-runtime=runc", not_by_flag),
    Fault(
        "dockerd dies of the reload, and of each start",
        lambda host: drop_in(host, DEADLY.format(config=CONFIG)),
        1,
        "failed to start daemon: the test guard",
        no_drop_in,
    ),
    Fault("dockerd is down since before", broken_before, 1, "no-such-key", nothing),
)


@pytest.mark.parametrize("distribution", cases(("debian12", "debian13", "debian-sid")))
def test_all_is_as_it_was_before(lab: Lab, tmp_path: Path, distribution: str) -> None:
    host = lab.host(distribution, runtime="docker", files={TARGET: THEIRS, NVIDIA: '#!/bin/sh\nexec runc "$@"\n'})
    host.nsrun(f"ln -s {TARGET} {CONFIG}; chown root:adm {TARGET}; chmod 640 {TARGET}; chmod 755 {NVIDIA}", check=True)
    host.nsrun("ln -s /usr/sbin/runc /usr/bin/crun; systemctl restart docker", check=True)
    controller = Controller("ssh", tmp_path)
    for fault in FAULTS:
        if distribution not in fault.only:
            continue
        fault.arrange(host)
        before = state(host)
        result = expect(
            controller.gpunode(host, "setup", "--yes", "--only", "runtime", "--runtime", "docker"), fault.code
        )
        assert fault.words in result.stdout + result.stderr, (fault.claim, result.stdout, result.stderr)
        wait_for(host, str(before["active"]))
        assert state(host) == before, fault.claim
        fault.mended(host)
    mended_by_a_start(host, controller)


def mended_by_a_start(host: Host, controller: Controller) -> None:
    """The start limit is used up and the file is good again: gpunode starts dockerd past it."""
    put(THEIRS)(host)
    assert active(host) == "failed"
    expect(controller.gpunode(host, "setup", "--yes", "--only", "runtime", "--runtime", "docker"), 0)
    assert state(host)["default"] == "nvidia"
    assert host.path(CONFIG).is_symlink()


def state(host: Host) -> dict[str, object]:
    """Bytes, mode and owner of everything in /etc/docker, the unit's state, and what the running daemon says."""
    info = host.nsrun(
        "systemctl -q is-active docker && curl -s --max-time 5 --unix-socket /run/docker.sock http://d/info"
    )
    answer = json.loads(info.stdout or "{}")
    return {
        "files": host.nsrun(
            "cd /etc/docker; find . -printf '%p %M %u %g %l\\n' | sort; cat daemon.json", check=True
        ).stdout,
        "active": active(host),
        "default": answer.get("DefaultRuntime"),
        # 20.10 forgets the names of its own shims at any reload of a file that lists runtimes.
        "runtimes": sorted(name for name in answer.get("Runtimes", ()) if not name.startswith("io.containerd.")),
    }


def active(host: Host) -> str:
    return host.nsrun("systemctl show docker -p ActiveState --value").stdout.strip()


def wait_for(host: Host, wanted: str) -> None:
    """systemd counts its restarts for some seconds."""
    for _ in range(100):
        if active(host) == wanted:
            return
        time.sleep(0.2)
    raise AssertionError(f"docker is {active(host)}, not {wanted}")
