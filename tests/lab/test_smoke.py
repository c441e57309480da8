"""check --smoke and --survive-reload by real daemons: what gets the GPU, what does not, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect
from .wide import cases
from .workload import MODEST_RUNC

DOCKER = {"debian12": "docker 20.10", "debian13": "docker 26", "debian-sid": "docker 28"}
CONTAINERD = {"debian12": "containerd 1.6", "debian13": "containerd 1.7", "debian-sid": "containerd 2.1"}
BOTH = ("--smoke", "--survive-reload")
GPU, RELOAD, CLEANUP = "smoke.container-gpu", "smoke.daemon-reload", "smoke.cleanup"
LINKS = "nvidia-ctk system create-dev-char-symlinks --create-all"
# As MODEST_RUNC, and the rules for devices stay: they are what is looked at.
MODEST = MODEST_RUNC.replace(
    'config["linux"].pop("resources", None)',
    'config["linux"]["resources"] = {"devices": config["linux"].get("resources", {}).get("devices", [])}',
)
SYSTEMD_CGROUP = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
BY_CGROUPFS = """
grep -rlZ SystemdCgroup /etc/containerd | xargs -0 sed -i 's/SystemdCgroup = true/SystemdCgroup = false/'
systemctl restart containerd
"""
# What a test may have made.
LEFT = """
ls -d /run/gpunode-test /var/lib/gpunode-test
for cli in docker podman; do
  if [ -x /usr/bin/$cli ]; then $cli ps -a --format '{{.Names}}'; $cli images --format '{{.Repository}}'; fi
done
if [ -x /usr/bin/ctr ]; then ctr namespaces ls -q | grep gpunode; ctr -n gpunode-test containers ls -q; fi
true
"""
# As a run leaves it that was killed: its process is gone.
KILLED = """
mkdir -p /run/gpunode-test /var/lib/gpunode-test/root
echo '999999 1' >/run/gpunode-test/owner
"""
KILLED_CTR = """
mkdir -p /root/empty
ctr -n gpunode-test containers create --rootfs /root/empty gpunode-test-0 /bin/sh
"""


def ready(
    lab: Lab, tmp_path: Path, distribution: str, runtime: str, files: dict[str, str] | None = None
) -> tuple[Host, Controller]:
    host, me = lab.host(distribution, gpu="h100", runtime=runtime, files=files), Controller("ssh", tmp_path / "home")
    expect(me.gpunode(host, "setup", "--yes", "--trust-key", lab.repo_fingerprint), 0)
    return host, me


def checked(me: Controller, host: Host, *options: str) -> dict[str, Any]:
    """The results of the active tests by their ids."""
    answer = me.gpunode(host, "check", "--json", *options)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    results = json.loads(answer.stdout)["hosts"][0]["checks"]
    return {one["id"]: one for one in results if one["id"] in (GPU, RELOAD, CLEANUP)}


def outcomes(found: dict[str, Any]) -> list[str]:
    """pass, finding or not-applicable; why not goes into the test's output."""
    print({id: one["reason"] for id, one in found.items() if one.get("reason")})
    return [found[id]["outcome"] for id in (GPU, RELOAD, CLEANUP)]


def left(host: Host) -> str:
    return host.nsrun(LEFT).stdout


def cut_off(host: Host, me: Controller, how: str) -> None:
    """A run of --smoke that is cut off once a container runs: its shell on the host is killed, or whoever reads it."""
    argv = (sys.executable, "-m", "gpunode", "check", "--smoke", "--runtime", "docker", "--ssh", host.name)
    with subprocess.Popen(argv, env=me.env(host), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        host.nsrun("until docker ps --format '{{.Names}}' | grep -q gpunode-test; do sleep 0.1; done", check=True)
        if how == "connection":
            run.kill()
        else:
            host.nsrun("kill -9 $(cut -d ' ' -f 1 /run/gpunode-test/owner)", check=True)
            assert run.wait(timeout=120) == 3


@pytest.mark.parametrize("distribution", cases(DOCKER))
def test_docker(lab: Lab, tmp_path: Path, distribution: str) -> None:
    host, me = ready(lab, tmp_path, distribution, "docker")
    assert left(host) == ""
    cut_off(host, me, "connection")
    host.nsrun("while [ -e /run/gpunode-test ]; do sleep 0.2; done", check=True)
    assert left(host) == ""
    cut_off(host, me, "shell")
    assert "gpunode-test-0" in left(host)

    # runc 1.1.5 names devices to systemd by their links in /dev/char, which no udev makes here; later ones do not.
    found = checked(me, host, *BOTH, "--runtime", "docker")
    old = distribution == "debian12"
    assert outcomes(found) == ["pass", "finding" if old else "pass", "pass"], found
    if old:
        assert "docker run: /dev/nvidia0: Operation not permitted" in found[RELOAD]["evidence"]
        assert LINKS in found[RELOAD]["remedy"]["text"]
    assert left(host) == ""
    host.nsrun(LINKS, check=True)
    found = checked(me, host, *BOTH, "--runtime", "docker")
    assert outcomes(found) == ["pass", "pass", "pass"], found

    host.nsrun("kill -STOP $(pidof dockerd)", check=True)  # it hangs: no proof of anything, and said so
    found = checked(me, host, "--smoke", "--runtime", "docker")
    host.nsrun("kill -CONT $(pidof dockerd)", check=True)
    assert outcomes(found) == ["not-applicable", "not-applicable", "finding"], found
    assert "docker run --gpus all: it does not load an image: exit code 124" in found[GPU]["reason"]
    assert "docker ps does not answer" in found[CLEANUP]["evidence"]
    assert left(host) == ""

    host.nsrun("rm /etc/docker/daemon.json; systemctl restart docker", check=True)
    found = checked(me, host, "--smoke", "--runtime", "docker")
    assert outcomes(found) == ["finding", "not-applicable", "pass"], found
    assert "docker run --runtime nvidia: " in found[GPU]["evidence"]
    assert "untime" in found[GPU]["evidence"].partition("docker run --runtime nvidia: ")[2]
    assert left(host) == ""


@pytest.mark.parametrize("distribution", cases(CONTAINERD))
def test_containerd(lab: Lab, tmp_path: Path, distribution: str) -> None:
    host, me = ready(lab, tmp_path, distribution, "containerd", {"/etc/containerd/config.toml": SYSTEMD_CGROUP})
    host.write("/usr/local/sbin/runc", MODEST, 0o755)
    host.nsrun(KILLED + KILLED_CTR, check=True)
    assert "gpunode-test-0" in left(host)

    # By systemd's cgroups, as kubelets want them, and without links in /dev/char: lost with runc 1.1.5 and systemd 252.
    found = checked(me, host, *BOTH)
    old = distribution == "debian12"
    assert outcomes(found) == ["pass", "finding" if old else "pass", "pass"], found
    assert left(host) == ""
    if old:
        assert "nvidia-container-runtime: /dev/nvidia0: Operation not permitted" in found[RELOAD]["evidence"]
        host.nsrun(LINKS, check=True)
        found = checked(me, host, *BOTH)
        assert outcomes(found) == ["pass", "pass", "pass"], found
        host.nsrun("rm -r /dev/char", check=True)

    # By cgroups of runc's own, of which systemd knows nothing.
    host.nsrun(BY_CGROUPFS, check=True)
    found = checked(me, host, *BOTH)
    assert outcomes(found) == ["pass", "pass", "pass"], found
    assert left(host) == ""

    host.nsrun("mv /usr/bin/nvidia-container-runtime /root/", check=True)
    found = checked(me, host, "--smoke")
    assert outcomes(found) == ["finding", "not-applicable", "pass"], found
    assert "nvidia-container-runtime" in found[GPU]["evidence"]
    host.nsrun("mv /root/nvidia-container-runtime /usr/bin/", check=True)

    host.nsrun(
        "rm -rf /etc/containerd/conf.d; rm /etc/containerd/config.toml; systemctl restart containerd", check=True
    )
    found = checked(me, host, "--smoke")
    assert outcomes(found) == ["finding", "not-applicable", "pass"], found
    assert "no handler nvidia" in found[GPU]["evidence"]
    assert left(host) == ""


def test_podman(lab: Lab, tmp_path: Path) -> None:
    host, me = ready(lab, tmp_path, "debian13", "podman")
    host.nsrun("mv /usr/bin/crun /usr/libexec/crun", check=True)
    for path, program in {"/usr/local/sbin/runc": "/usr/sbin/runc", "/usr/bin/crun": "/usr/libexec/crun"}.items():
        named = MODEST.replace("/usr/sbin/runc", program).replace('"runc"', f'"{path.rpartition("/")[2]}"')
        host.write(path, named, 0o755)
    host.nsrun(KILLED, check=True)
    # Without links in /dev/char. Even runc 1.1.5 keeps the GPU here: systemd 257 leaves the rules of a unit that did
    # not change, and 252, with which it is lost, has no podman in the lab.
    found = checked(me, host, *BOTH)
    assert outcomes(found) == ["pass", "pass", "pass"], found
    assert left(host) == ""

    host.nsrun("rm -f /etc/cdi/* /var/run/cdi/*", check=True)
    found = checked(me, host, "--smoke")
    assert outcomes(found) == ["finding", "not-applicable", "pass"], found
    assert "podman run --device nvidia.com/gpu=all: " in found[GPU]["evidence"]
    assert left(host) == ""
