"""A docker that a user runs without root: their file, their daemon, and the one setting of the host that it needs."""

from __future__ import annotations

import json
from pathlib import Path

from .container_image import write_image
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .test_undo_containers import until
from .typed import GPUS, Typed
from .typist import BY_CDI, BY_HOOK, BY_RUNTIME, PLAIN, Asked, Typist

USER, HOME = "nosudo", "/home/nosudo"
CONFIG, TOOLKIT = f"{HOME}/.config/docker/daemon.json", "/etc/nvidia-container-runtime/config.toml"
# As dockerd-rootless-setuptool.sh writes it, but for the firewall, which this kernel may not have.
UNIT = """[Service]
Environment=PATH=/usr/sbin:/sbin:/usr/bin:/bin
ExecStart=/usr/share/docker.io/contrib/dockerd-rootless.sh --iptables=false --ip6tables=false
Type=notify
NotifyAccess=all
Delegate=yes
KillMode=mixed

[Install]
WantedBy=default.target
"""
IMAGE = "lab.example/busybox:lab"
ASKED = {
    "`docker run`": BY_RUNTIME,
    "`docker run --gpus all`": BY_HOOK,
    "`docker run --device nvidia.com/gpu=all`": BY_CDI,
}
# By name: how the page calls it, and how it was made.
SINCE = {
    "since": ("a container made since", BY_RUNTIME),
    "since-gpus": ("a container made since with `--gpus`", Asked("--runtime runc --gpus all", BY_HOOK.holds)),
}
THEIRS = '{\n  "debug": true,\n  "labels": ["mine=1"]\n}\n'
# dockerd --validate takes it, and the reload does not.
BAD = THEIRS.replace(
    "\n}", ',\n  "runtimes": {"x": {"runtimeType": "io.containerd.runc.v2", "options": {"IoUid": 0.5}}}\n}'
)


def uid(host: Host) -> str:
    return host.nsrun(f"id -u {USER}", check=True).stdout.strip()


def info(host: Host) -> dict[str, object]:
    socket = f"/run/user/{uid(host)}/docker.sock"
    answer: dict[str, object] = json.loads(
        host.nsrun(f"curl -s --unix-socket {socket} http://d/info", check=True).stdout
    )
    return answer


def pid(host: Host) -> str:
    return host.nsrun(f"cat /run/user/{uid(host)}/docker.pid", check=True).stdout


def theirs(host: Host) -> str:
    """Owner and mode of everything below ~/.config, except what enables the unit."""
    find = "find .config -path .config/systemd -prune -o -printf '%p %u:%g %m\\n'"
    return host.nsrun(f"cd {HOME}; {find} 2>/dev/null | sort").stdout


def new_host(lab: Lab) -> Host:
    host = lab.host(
        "debian13",
        gpu="h100",
        runtime="rootless",
        files={f"/var/lib/systemd/linger/{USER}": "", "/etc/systemd/user/docker.service": UNIT},
    )
    host.nsrun("systemctl is-system-running --wait")
    host.nsrun(f"systemctl --user --machine={USER}@ enable --now docker", check=True)
    return host


def setup(controller: Controller, host: Host, code: int, *words: str, runtime: str = "docker") -> str:
    done = expect(controller.gpunode(host, "setup", "--yes", "--only", "runtime", "--runtime", runtime, *words), code)
    return " ".join((done.stdout + done.stderr).split())


def typist(host: Host) -> Typist:
    """The user, at their own docker."""
    write_image(host.path(f"{HOME}/lab-image.tar"), IMAGE, command=("/bin/sleep", "6000"))
    socket = f"DOCKER_HOST=unix:///run/user/{uid(host)}/docker.sock"
    made = Typist(lambda command: host.run(f"{socket} {command}", user=USER), "docker", IMAGE)
    assert made.type("docker load -qi lab-image.tar").returncode == 0
    return made


def test_a_users_own_docker_is_set_up_and_undone_as_that_user(lab: Lab, tmp_path: Path) -> None:
    host, me, table = new_host(lab), Controller("ssh", tmp_path), Typed("rootless docker 26")
    docker, before = typist(host), theirs(host)

    def seen() -> dict[str, str]:
        return {**docker.fresh(ASKED), **docker.there("old", "a container from before")}

    def since() -> dict[str, str]:
        return {key: value for name, made in SINCE.items() for key, value in docker.there(name, *made).items()}

    docker.start("old", PLAIN)
    table.note("before `setup`", seen())
    words = ("setup", "--yes", "--runtime", "docker", "--trust-key", lab.repo_fingerprint)
    set_up_as_that_user(host, me, docker, words)
    for name, (_, asked) in SINCE.items():
        docker.start(name, asked)
    table.note("after `setup`", {**seen(), **since()})
    host.reboot()
    until(lambda: host.nsrun(f"systemctl --user --machine={USER}@ is-active docker").returncode == 0)
    table.note("after a reboot", {**seen(), **since()})

    told = expect(me.gpunode(host, "undo", "--yes"), 6).stdout
    assert all(name in told for name in SINCE), told
    table.note("after `undo`", {**seen(), **since()})
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 6)
    kept = since()
    docker.remove(*SINCE)
    expect(me.gpunode(host, "undo", "--yes", "--packages"), 0)
    table.note("after `undo --packages`", {**seen(), **kept})
    table.seen["before `setup`"] |= dict.fromkeys(kept, "none yet")
    assert (theirs(host), info(host)["DefaultRuntime"], host.exists(TOOLKIT)) == (before, "runc", False)
    table.hold()
    what_is_theirs_stays_theirs(host, me)


def set_up_as_that_user(host: Host, me: Controller, docker: Typist, words: tuple[str, ...]) -> None:
    """Their docker is theirs to restart: until then it gives out no GPUs, as the plan says."""
    daemon = pid(host)
    said = expect(me.gpunode(host, *words), 6).stdout
    assert f"As {USER}: systemctl --user restart docker" in " ".join(said.split())
    assert (info(host)["DefaultRuntime"], pid(host)) == ("nvidia", daemon)
    assert theirs(host).splitlines() == [
        f".config {USER}:users 755",
        f".config/docker {USER}:users 755",
        f".config/docker/daemon.json {USER}:users 644",
    ]
    assert not [said for said in docker.fresh(ASKED).values() if said == GPUS]
    host.nsrun(f"systemctl --user --machine={USER}@ restart docker", check=True)
    assert "no changes" in expect(me.gpunode(host, *words), 0).stdout


def what_is_theirs_stays_theirs(host: Host, me: Controller) -> None:
    host.write("/usr/bin/nvidia-container-runtime", '#!/bin/sh\nexec runc "$@"\n', 0o755)
    host.nsrun(f"install -d -o {USER} -g users -m 700 {HOME}/.config {HOME}/.config/docker", check=True)
    host.write(CONFIG, BAD, 0o600)
    host.nsrun(f"chown {USER}:users {CONFIG}", check=True)
    before = theirs(host)
    assert "Can't convert 0.5" in setup(me, host, 1), "the daemon's own words, from its user's journal"
    assert (host.read(CONFIG), theirs(host), info(host)["DefaultRuntime"]) == (BAD, before, "runc")

    host.path(CONFIG).write_text(THEIRS)
    setup(me, host, 0, runtime=f"docker@{USER}")
    assert (theirs(host), info(host)["DefaultRuntime"]) == (before, "nvidia")

    # A link to a file of root's, which root would follow.
    host.write("/etc/ours.json", THEIRS)
    host.nsrun(f"ln -sf /etc/ours.json {CONFIG}", check=True)
    assert "is not a file of user" in setup(me, host, 1)
    assert host.read("/etc/ours.json") == THEIRS
