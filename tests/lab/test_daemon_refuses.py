"""A daemon that does not take the new config gets its old bytes back, and the reason is shown in its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

CONFIG = {"docker": "/etc/docker/daemon.json"}


def state(host: Host, engine: str) -> tuple[str, str, str]:
    config = CONFIG[engine]
    host.nsrun(f"systemctl start {engine}")  # returns once a start that is under way has ended
    file = host.nsrun(f"sha256sum {config} 2>&1; stat -c '%a %U %G' {config} 2>&1").stdout
    active = host.nsrun(f"systemctl is-active {engine}").stdout.strip()
    return file, active, host.nsrun(f"systemctl show {engine} -p SubState --value").stdout.strip()


@pytest.mark.parametrize("distribution", ["debian12", "debian13", "debian-sid"])
def test_docker_that_keeps_its_old_default_is_put_back(lab: Lab, tmp_path: Path, distribution: str) -> None:
    """The reload does nothing here, so /info never says nvidia: the file goes back and docker was never restarted."""
    unit = "[Service]\nExecReload=\nExecReload=/bin/true\n"
    host = lab.host(
        distribution,
        gpu="none",
        runtime="docker",
        files={
            "/etc/systemd/system/docker.service.d/deaf.conf": unit,
            "/etc/docker/daemon.json": '{\n  "log-driver": "json-file"\n}\n',
            "/usr/bin/nvidia-container-runtime": "#!/bin/sh\n",
        },
    )
    host.nsrun("chmod 755 /usr/bin/nvidia-container-runtime; chmod 640 /etc/docker/daemon.json", check=True)
    before = state(host, "docker")
    result = expect(Controller("ssh", tmp_path).gpunode(host, "setup", "--yes", "--only", "runtime"), 1)
    assert "runc" in result.stdout + result.stderr
    assert state(host, "docker") == before
