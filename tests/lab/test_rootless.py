"""A docker that a user runs without root: their file, their daemon, and the one setting of the host that it needs."""

from __future__ import annotations

import json
from pathlib import Path

from .container_image import write_image
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

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
"""
# It sees what the daemon sees: a copy of /etc from the daemon's start.
STUB = f"""#!/bin/sh
grep -s no-cgroups {TOOLKIT} >>{HOME}/stub.log || echo "no config" >>{HOME}/stub.log
exec runc "$@"
"""
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
    """Owner and mode of everything below ~/.config."""
    return host.nsrun(f"cd {HOME}; find .config -printf '%p %u:%g %m\\n' 2>/dev/null | sort").stdout


def new_host(lab: Lab) -> Host:
    host = lab.host(
        "debian13",
        runtime="rootless",
        files={f"/var/lib/systemd/linger/{USER}": "", "/etc/systemd/user/docker.service": UNIT},
    )
    host.write("/usr/bin/nvidia-container-runtime", STUB, 0o755)
    host.nsrun("systemctl is-system-running --wait")
    host.nsrun(f"systemctl --user --machine={USER}@ start docker", check=True)
    return host


def setup(controller: Controller, host: Host, code: int, *words: str, runtime: str = "docker") -> str:
    done = expect(controller.gpunode(host, "setup", "--yes", "--only", "runtime", "--runtime", runtime, *words), code)
    return " ".join((done.stdout + done.stderr).split())


def test_a_users_own_docker_is_set_up_and_undone_as_that_user(lab: Lab, tmp_path: Path) -> None:
    host, me = new_host(lab), Controller("ssh", tmp_path)
    before, daemon = theirs(host), pid(host)

    said = setup(me, host, 6)
    assert f"As {USER}: systemctl --user restart docker" in said
    assert (info(host)["DefaultRuntime"], pid(host)) == ("nvidia", daemon)
    assert theirs(host).splitlines() == [
        f".config {USER}:users 755",
        f".config/docker {USER}:users 755",
        f".config/docker/daemon.json {USER}:users 644",
    ]
    host.nsrun(f"systemctl --user --machine={USER}@ restart docker", check=True)
    assert "no changes" in setup(me, host, 0)
    assert container_sees(host) == "no-cgroups = true"

    expect(me.gpunode(host, "undo", "--yes"), 0)
    assert (theirs(host), info(host)["DefaultRuntime"], host.exists(TOOLKIT)) == (before, "runc", False)
    what_is_theirs_stays_theirs(host, me)


def what_is_theirs_stays_theirs(host: Host, me: Controller) -> None:
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


def container_sees(host: Host) -> str:
    """What the runtime of a new container finds in the toolkit's config."""
    write_image(host.path(f"{HOME}/lab-image.tar"), "lab.example/busybox:lab", command=("/bin/sleep", "600"))
    docker = f"DOCKER_HOST=unix:///run/user/{uid(host)}/docker.sock docker"
    ran = host.run(
        f"{docker} load -i lab-image.tar && {docker} run --rm --network none lab.example/busybox:lab true",
        user=USER,
    )
    assert ran.returncode == 0, ran.stderr
    return host.read(f"{HOME}/stub.log").splitlines()[-1]
