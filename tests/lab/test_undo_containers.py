"""Containers and pods of before and since a setup, after its undo: what ran still runs, restarts and takes an exec."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from .container_image import write_image
from .host import Host, Result
from .lab import Lab
from .product_runs import Controller, expect
from .test_undo import default_runtime, difference, ready, tree
from .workload import MODEST_RUNC, PAUSE, SOCKET

PODS = ("cri_pod.py", "cri_since.py")
IMAGE = PAUSE[0]
CONFIG, NVIDIA = "/etc/docker/daemon.json", "/usr/bin/nvidia-container-runtime"


def words(result: Result) -> str:
    return " ".join((result.stdout + result.stderr).split())


def fetched(lab: Lab, home: Path, distribution: str) -> tuple[Host, Controller]:
    """A host with docker and a containerd that has CRI, with an image for both."""
    host, me = ready(lab, home, distribution, "docker", "ssh")
    write_image(host.path("/root/lab-image.tar"), *PAUSE, command=("/bin/sleep", "3600"))
    host.write("/usr/local/sbin/runc", MODEST_RUNC, 0o755)
    host.nsrun("docker load -qi /root/lab-image.tar; ctr -n k8s.io images import /root/lab-image.tar", check=True)
    for name in PODS:
        host.write(f"/root/{name}", (Path(__file__).parent / name).read_text())
    return host, me


def start(host: Host, name: str, *options: str) -> None:
    host.nsrun(f"docker run -d --name {name} --restart always --network none {' '.join(options)} {IMAGE}", check=True)


def pods(host: Host, *words: str) -> str:
    return host.nsrun(f"python3 /root/cri_since.py {SOCKET} {' '.join(words)}", check=True).stdout


def works(host: Host, name: str) -> None:
    """It is exec'd into, restarted, and exec'd into again."""
    for command in (f"exec {name} true", f"restart -t 0 {name}", f"exec {name} true"):
        done = host.nsrun(f"docker {command}")
        assert done.returncode == 0, (name, command, done.stderr)


def rebooted(host: Host) -> None:
    """The power goes: containers that ignore signals would delay a reboot for minutes."""
    host.kill()
    host.start()
    host.nsrun("systemctl is-system-running --wait")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not come to that within a minute"
        time.sleep(0.2)


def running(host: Host) -> set[str]:
    return set(host.nsrun("docker ps --format '{{.Names}}'").stdout.split())


def defaults(host: Host, me: Controller) -> tuple[str, str]:
    return default_runtime(host, me, "docker"), default_runtime(host, me, "containerd")


def test_what_ran_before_and_since_works_after_undo_and_a_reboot_until_it_is_gone(lab: Lab, tmp_path: Path) -> None:
    host, me = fetched(lab, tmp_path / "home", "debian-sid")
    start(host, "before")
    before = tree(host)
    expect(me.gpunode(host, "setup", "--yes", "--only", "toolkit,runtime", "--trust-key", lab.repo_fingerprint), 6)
    start(host, "since")
    host.nsrun(f"docker create --name stopped --network none {IMAGE}; docker create --gpus all --runtime runc "
               f"--name gpus --network none {IMAGE}", check=True)  # fmt: skip
    plain, named = pods(host, "run", "plain", IMAGE).split(), pods(host, "run", "named", IMAGE, "nvidia").split()

    shown = words(expect(me.gpunode(host, "undo", "--dry-run", "--packages"), 0))
    assert "docker: 2 containers with the runtime nvidia: " in shown
    assert "docker: 1 container made with --gpus: gpus" in shown
    assert "containerd: 1 container with the runtime nvidia: default/named" in shown
    assert "1 container running by nvidia-container-runtime: default/plain" in shown

    told = words(expect(me.gpunode(host, "undo", "--yes", "--packages"), 6))
    assert "then gpunode undo --packages" in told
    assert defaults(host, me) == ("runc", "runc")
    assert host.exists(NVIDIA)
    start(host, "after")
    assert host.nsrun("docker inspect -f '{{.HostConfig.Runtime}}' after").stdout == "runc\n"
    for name in ("before", "since", "after"):
        works(host, name)
    for _, container in (plain, named):
        pods(host, "exec", container)
    expect(me.gpunode(host, "undo", "--yes"), 6)  # nothing is left to do, and nothing changes

    rebooted(host)
    until(lambda: {"before", "since", "after"} <= running(host))
    for name in ("before", "since", "after"):
        works(host, name)
    host.nsrun("docker start stopped && docker exec stopped true", check=True)
    for pod, _ in (plain, named):
        pods(host, "remove", pod)

    host.nsrun("docker rm -f since stopped gpus", check=True)
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert difference(before, tree(host)) == []
    assert not host.exists(NVIDIA)
    for name in ("before", "after"):
        works(host, name)
    rebooted(host)
    until(lambda: {"before", "after"} <= running(host))


def test_with_their_loss_allowed_everything_goes_and_they_are_named(lab: Lab, tmp_path: Path) -> None:
    host, me = fetched(lab, tmp_path / "home", "debian12")
    start(host, "before")
    before = tree(host)
    expect(me.gpunode(host, "setup", "--yes", "--only", "toolkit,runtime", "--trust-key", lab.repo_fingerprint), 6)
    start(host, "since")
    pod, _ = pods(host, "run", "named", IMAGE, "nvidia").split()

    done = words(expect(me.gpunode(host, "undo", "--yes", "--packages", "--allow-container-loss"), 0))
    assert "docker: 1 container with the runtime nvidia cannot be started" in done
    assert "default/named" in done
    assert difference(before, tree(host)) == []
    assert not host.exists(NVIDIA)
    works(host, "before")
    assert host.nsrun("docker restart -t 0 since").returncode != 0
    assert "nothing to undo" in expect(me.gpunode(host, "undo", "--yes", "--packages"), 0).stdout

    rebooted(host)
    until(lambda: "before" in running(host))

    # And a default that setup set is taken back by setup --no-default; the handler stays for those who name it.
    restarting = ("--allow-container-restart", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, "setup", "--yes", "--only", "toolkit,runtime", *restarting), 0)
    assert defaults(host, me) == ("nvidia", "nvidia")
    until(lambda: "before" in running(host))
    expect(me.gpunode(host, "setup", "--yes", "--only", "runtime", "--no-default"), 0)
    assert defaults(host, me) == ("runc", "runc")
    host.nsrun(f"docker run --rm --runtime nvidia --network none {IMAGE} true", check=True)
    again = words(expect(me.gpunode(host, "setup", "--yes", "--only", "runtime", "--no-default"), 0))
    assert "this host matches the spec" in again
    host.nsrun("docker rm -f since", check=True)
    pods(host, "remove", pod)
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert difference(before, tree(host)) == []


def test_no_default_is_left_at_a_program_that_goes(lab: Lab, tmp_path: Path) -> None:
    """An undo stopped at a daemon.json that nobody could read; somebody corrected it since."""
    host, me = ready(lab, tmp_path / "home", "debian13", "docker", "ssh")
    setup = ("setup", "--yes", "--only", "toolkit,runtime", "--runtime", "docker", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *setup), 0)
    right = host.read(CONFIG)
    host.write(CONFIG, right.replace("{", "{ broken", 1))
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 1)
    assert host.exists(NVIDIA)
    assert default_runtime(host, me, "docker") == "nvidia"

    host.write(CONFIG, right)
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    assert default_runtime(host, me, "docker") == "runc"
    assert not host.exists(NVIDIA)
    assert json.loads(host.nsrun("docker info --format '{{json .Runtimes}}'").stdout).keys().isdisjoint({"nvidia"})
