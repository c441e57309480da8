"""A docker.service that systemd stops with containerd's, as docker-ce 18.09 to 20.10 shipped it: both daemons real."""

from __future__ import annotations

from pathlib import Path

from . import docker_typed as docker
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .test_undo_containers import words

BOUND = "[Unit]\nBindsTo=containerd.service\nAfter=containerd.service\n"


def running(host: Host) -> str:
    return host.nsrun("docker ps --format '{{.Names}} {{.Status}}'", check=True).stdout


def test_a_container_of_docker_outlives_what_is_done_to_containerd(lab: Lab, tmp_path: Path) -> None:
    files = {"/etc/systemd/system/docker.service.d/bound.conf": BOUND}
    host = lab.host("debian12", gpu="h100", runtime="docker", files=files)
    docker.load_image(host)
    host.nsrun(f"docker run -d --name old --network none {docker.IMAGE}", check=True)
    me = Controller("ssh", tmp_path / "home")
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint, "--runtime", "containerd")

    said = words(expect(me.gpunode(host, *setup), 6))
    assert "a restart would stop the container old" in said
    assert "systemctl restart containerd" in said
    assert "old Up" in running(host)
    assert "nvidia" in host.read("/etc/containerd/config.toml")

    before = host.nsrun("systemctl show -p MainPID containerd docker", check=True).stdout
    expect(me.gpunode(host, *setup, "--allow-container-restart"), 0)
    assert host.nsrun("systemctl show -p MainPID containerd docker", check=True).stdout != before
    assert host.nsrun("docker info --format '{{.ServerVersion}}'").returncode == 0
    assert "no changes" in expect(me.gpunode(host, *setup), 0).stdout
