"""Hosts without systemd: daemons that somebody started by hand, an init script, and an image in a chroot."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .host import Host
from .lab import Lab
from .site import ROOT

# Everything here runs in a mount and pid namespace of its own, whose /run is empty: no systemd is to be seen.
BY_HAND = """
set -e
mount -t tmpfs -o mode=755 tmpfs /run
containerd >/root/containerd.log 2>&1 &
dockerd --iptables=false --ip6tables=false --bridge=none >/root/dockerd.log 2>&1 &
for i in $(seq 300); do
    docker info >/dev/null 2>&1 && [ -S /run/containerd/containerd.sock ] && break
    sleep 0.1
done
pid=$(cat /run/docker.pid)
rm -f /etc/init.d/containerd
set +e

gpunode setup --yes --only runtime >/root/first 2>&1; echo "first $?"
echo "docker $(docker info --format '{{.DefaultRuntime}}') $([ "$pid" = "$(cat /run/docker.pid)" ] && echo same)"
gpunode setup --yes --only runtime >/root/second 2>&1; echo "second $?"

cat >/etc/init.d/containerd <<'END'
#!/bin/sh
case $1 in
restart) start-stop-daemon --stop --quiet --oknodo --retry 10 --exec /usr/bin/containerd
    start-stop-daemon --start --quiet --background --exec /usr/bin/containerd ;;
start) start-stop-daemon --start --quiet --background --exec /usr/bin/containerd ;;
esac
END
chmod 755 /etc/init.d/containerd
gpunode setup --yes --only runtime >/root/third 2>&1; echo "third $?"
gpunode setup --yes --only runtime >/root/fourth 2>&1; echo "fourth $?"
gpunode runtime show --json
"""
# An image over this very root, with the machine's /proc and /run in it, as image builders mount them.
CHROOT = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --bind /proc /mnt/root/proc
mount --bind /run /mnt/root/run
set +e
chroot /mnt/root gpunode setup --yes --only runtime --runtime docker,containerd
"""


def new_host(lab: Lab, site: Path) -> Host:
    host = lab.host("debian13", runtime="docker")
    host.write("/usr/bin/nvidia-container-runtime", '#!/bin/sh\nexec runc "$@"\n', 0o755)
    host.install_gpunode(ROOT, site)
    return host


def test_what_can_be_done_is_done_and_the_rest_is_said(lab: Lab, gpunode_site: Path) -> None:
    host = new_host(lab, gpunode_site)

    pids = host.nsrun("systemctl show docker containerd -p MainPID", check=True).stdout
    image = host.nsrun(CHROOT)
    assert image.returncode == 0, image.stdout + image.stderr
    assert "written only: an image is being built" in " ".join((image.stdout + image.stderr).split())
    assert json.loads(host.nsrun("cat /mnt/root/etc/docker/daemon.json").stdout)["default-runtime"] == "nvidia"
    assert "nvidia" in host.nsrun("cat /mnt/root/etc/containerd/config.toml", check=True).stdout
    assert not host.exists("/etc/docker/daemon.json")
    assert host.nsrun("systemctl show docker containerd -p MainPID").stdout == pids

    host.nsrun("systemctl stop docker.socket docker containerd", check=True)
    done = host.nsrun("unshare --mount --pid --fork --mount-proc --kill-child sh -s", input=BY_HAND)
    said, _, shown = done.stdout.partition("{")
    logs = "\n".join(host.read(f"/root/{name}") for name in ("first", "second", "third", "fourth"))
    assert said.splitlines() == ["first 6", "docker nvidia same", "second 6", "third 0", "fourth 0"], logs + done.stderr
    first = " ".join(host.read("/root/first").split())
    assert re.search(r"kill [0-9]+; /usr/bin/containerd &", first)
    assert "no changes" in host.read("/root/fourth")
    engines = {e["name"]: e["effective_default"] for e in json.loads("{" + shown)["hosts"][0]["runtimes"]}
    assert engines == {"docker": "nvidia", "containerd": "nvidia"}
