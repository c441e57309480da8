"""What users type at docker before and after setup, a reboot and undo, at dockerd 20.10, 26 and 28."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import docker_typed as docker
from .docker_typed import CDI, GPUS_ALL, RUN
from .host import Host, Result
from .lab import Lab
from .product_runs import Controller, expect
from .test_undo_containers import rebooted, words
from .typed import GPUS, Typed

DAEMON_JSON = "/etc/docker/daemon.json"
# A runtime that only a flag of dockerd names; the container from before is of it.
BY_FLAG = 'DOCKER_OPTS="--add-runtime=myrunc=/usr/sbin/runc"\n'
# The table, and what setup is given for its column.
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "debian12": ("docker 20.10", ()),
    "debian13": ("docker 26, `setup --cdi`", ("--cdi",)),
    "debian-sid": ("docker 28", ()),
}


@pytest.mark.parametrize("distribution", TABLES)
def test_what_users_type_is_as_the_page_says(lab: Lab, tmp_path: Path, distribution: str) -> None:
    table, options = TABLES[distribution]
    typed, cdi = Typed(table), distribution != "debian12"
    host = lab.host(distribution, gpu="h100", runtime="docker", files={"/etc/default/docker": BY_FLAG})
    docker.load_image(host)
    docker.start(host, docker.BEFORE)
    me = Controller("ssh", tmp_path / "home")
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)
    before = docker.fresh(host)
    typed.note("before `setup`", {**before, **docker.from_before(host), **docker.none_since(cdi=cdi)})

    waits_for_a_restart(host, me, setup, before)
    live_restore(host)
    restarted = pid(host)
    expect(me.gpunode(host, *setup, *options), 0)
    assert pid(host) == restarted
    assert check(me, host) == "pass"
    docker.start(host, {**docker.SINCE, **(docker.SINCE_CDI if cdi else {})})
    typed.note("after `setup`", everything(host, cdi=cdi))

    rebooted(host)
    typed.note("after a reboot", everything(host, cdi=cdi))
    assert "no changes" in expect(me.gpunode(host, *setup, *options), 0).stdout

    assert "create anew or remove since" in words(expect(me.gpunode(host, "undo", "--yes"), 6))
    assert "myrunc" in info(host)["Runtimes"]
    typed.note("after `undo`", everything(host, cdi=cdi))

    expect(me.gpunode(host, "undo", "--yes", "--packages"), 6)
    since = docker.made_since(host, cdi=cdi)
    host.nsrun("docker ps -q --filter name=since | xargs docker rm -f", check=True)
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    typed.note("after `undo --packages`", {**docker.fresh(host), **docker.from_before(host), **since})
    typed.hold()


def everything(host: Host, *, cdi: bool) -> dict[str, str]:
    return {**docker.fresh(host), **docker.from_before(host), **docker.made_since(host, cdi=cdi)}


def waits_for_a_restart(host: Host, me: Controller, setup: tuple[str, ...], before: dict[str, str]) -> None:
    """It would end the container: everything else is done, and the command to run is printed."""
    running = pid(host)
    said = words(expect(me.gpunode(host, *setup), 6)).partition("manual step ")[2]
    assert "a restart would stop the container old, since" in said
    assert "systemctl restart docker, or gpunode setup again with --allow-container-restart" in said
    assert pid(host) == running
    # Without --cdi docker 26 has none; docker 28 needs no restart for it.
    by_cdi = GPUS if info(host).get("CDISpecDirs") else before[CDI]
    assert docker.fresh(host) == {RUN: GPUS, GPUS_ALL: before[GPUS_ALL], CDI: by_cdi}
    assert check(me, host) == "finding"


def live_restore(host: Host) -> None:
    """With it the container outlives a restart, which is then planned plainly."""
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
