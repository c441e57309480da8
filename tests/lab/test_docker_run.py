"""What users type at docker after setup, at dockerd 20.10, 26 and 28: their commands, and the containers they had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .container_image import write_image
from .host import Host, Result
from .lab import Lab
from .product_runs import Controller, expect

IMAGE, DAEMON_JSON = "lab.example/busybox:lab", "/etc/docker/daemon.json"
# A runtime that only a flag of dockerd names, and a container of it.
BY_FLAG = 'DOCKER_OPTS="--add-runtime=myrunc=/usr/sbin/runc"\n'
GPUS = f"docker run --rm --network none --gpus all {IMAGE} cat /etc/lab-hook"
PLAIN = f"docker run --rm --network none {IMAGE} true"


@pytest.mark.parametrize("distribution", ["debian12", "debian13", "debian-sid"])
def test_what_users_type_works_when_setup_says_done(lab: Lab, tmp_path: Path, distribution: str) -> None:
    host = lab.host(distribution, gpu="h100", runtime="docker", files={"/etc/default/docker": BY_FLAG})
    old_container(host)
    me = Controller("ssh", tmp_path / "home")
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)

    # A restart would end the container: everything else is done, and the command to run is printed.
    before = pid(host)
    said = expect(me.gpunode(host, *setup), 6).stdout
    words = " ".join(said.partition("manual step ")[2].split())
    assert "a restart would stop the container old, since" in words
    assert "systemctl restart docker, or gpunode setup again with --allow-container-restart" in words
    assert pid(host) == before
    host.nsrun(PLAIN, check=True)
    assert "could not select device driver" in host.nsrun(GPUS).stderr
    assert check(me, host) == "finding"
    still_works(host)

    # With live-restore it outlives a restart, which is then planned plainly.
    live_restore(host)
    before = pid(host)
    expect(me.gpunode(host, *setup), 0)
    assert pid(host) == before
    assert host.nsrun(GPUS, check=True).stdout.strip() == "NVIDIA_VISIBLE_DEVICES=all"
    host.nsrun(PLAIN, check=True)
    assert check(me, host) == "pass"
    still_works(host)

    assert "no changes" in expect(me.gpunode(host, *setup), 0).stdout

    expect(me.gpunode(host, "undo", "--yes"), 0)
    assert "myrunc" in info(host)["Runtimes"]
    still_works(host)


def old_container(host: Host) -> None:
    write_image(host.path("/root/lab-image.tar"), IMAGE, command=("/bin/sleep", "6000"))
    host.nsrun("docker load -i /root/lab-image.tar", check=True)
    host.nsrun(f"docker run -d --name old --network none --restart always --runtime myrunc {IMAGE}", check=True)


def still_works(host: Host) -> None:
    host.nsrun("docker exec old true && docker restart -t 0 old && docker exec old true", check=True)


def live_restore(host: Host) -> None:
    config = json.loads(host.read(DAEMON_JSON))
    host.write(DAEMON_JSON, json.dumps({**config, "live-restore": True}))
    host.nsrun("systemctl reload docker && sleep 2", check=True)
    assert info(host)["LiveRestoreEnabled"] is True


def pid(host: Host) -> str:
    return host.nsrun("docker inspect --format '{{.State.Pid}}' old", check=True).stdout.strip()


def info(host: Host) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(host.nsrun("docker info --format '{{json .}}'", check=True).stdout)
    return answer


def check(me: Controller, host: Host) -> str:
    """The outcome of rt.docker-gpus."""
    answer: Result = me.gpunode(host, "check", "--json")
    (one,) = [one for one in json.loads(answer.stdout)["hosts"][0]["checks"] if one["id"] == "rt.docker-gpus"]
    return str(one["outcome"])
