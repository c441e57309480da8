"""check --fix on a real host: what was broken works again, a second run has nothing to do, and undo takes it back."""

from __future__ import annotations

import json
from pathlib import Path

from . import docker_typed as docker
from .docker_typed import RUN
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect, fingerprint_of_state
from .typed import GPUS

DAEMON_JSON, LOAD = "/etc/docker/daemon.json", "/etc/modules-load.d/gpunode-nvidia.conf"
BROKEN = '{ "debug": true }'
PERSISTENCED = "nvidia-persistenced.service"


def findings(me: Controller, host: Host) -> dict[str, bool]:
    """What the check finds, and whether --fix mends it."""
    told = json.loads(me.gpunode(host, "check", "--json").stdout)
    rows = [row for row in told["hosts"][0]["checks"] if row["outcome"] == "finding"]
    return {row["id"]: row["fix"]["safe"] for row in rows}


def state(host: Host, unit: str) -> str:
    return host.nsrun(f"systemctl is-active {unit}; systemctl is-enabled {unit}").stdout


def test_what_is_safe_is_mended_and_undone(lab: Lab, tmp_path: Path) -> None:
    host, me = lab.host("debian12", gpu="h100", runtime="docker"), Controller("ssh", tmp_path / "home")
    docker.load_image(host)
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    before = findings(me, host)
    assert docker.fresh(host)[RUN] == GPUS

    host.write(DAEMON_JSON, BROKEN)
    host.nsrun("systemctl restart docker", check=True)
    host.nsrun(f"systemctl disable --now {PERSISTENCED}; nvidia-smi -pm 0", check=True)
    broken = findings(me, host)
    assert docker.fresh(host)[RUN] != GPUS
    assert broken["rt.docker-live"]
    assert {id for id, safe in broken.items() if safe} > {"rt.docker-live"}, broken
    pid = host.nsrun("pidof dockerd", check=True).stdout

    untouched = fingerprint_of_state(host)
    refused = expect(me.gpunode(host, "check", "--fix"), 2)
    assert "there is no terminal to ask on" in refused.stderr
    assert fingerprint_of_state(host) == untouched

    told = expect(me.gpunode(host, "check", "--fix", "--yes"), 0)
    assert "gone" in told.stdout
    assert docker.fresh(host)[RUN] == GPUS
    assert host.nsrun("pidof dockerd", check=True).stdout == pid, "a reload was enough"
    assert findings(me, host) == before

    settled = fingerprint_of_state(host)
    assert "Total" not in expect(me.gpunode(host, "check", "--fix", "--yes"), 0).stdout, "there is no plan"
    assert fingerprint_of_state(host) == settled, "a second run has nothing to do"

    run = json.loads(host.read("/var/lib/gpunode/journal.jsonl").splitlines()[-1])["run"].rpartition(".")[0]
    expect(me.gpunode(host, "undo", "--yes", "--run", run), 0)
    assert json.loads(host.read(DAEMON_JSON)) == json.loads(BROKEN)
    assert docker.fresh(host)[RUN] != GPUS
