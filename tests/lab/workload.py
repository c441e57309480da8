"""One container through the real daemon's default runtime; proof that it went through the stub nvidia runtime."""

from __future__ import annotations

from pathlib import Path

from .container_image import write_image
from .host import Host

STUB_LOG = "/var/log/nvidia-container-runtime.stub.log"
SOCKET = "/run/containerd/containerd.sock"
# The sandbox images that containerd 1.6, 1.7 and 2.1 ask for by default; nothing is pulled.
PAUSE = tuple(f"registry.k8s.io/pause:{version}" for version in ("3.6", "3.8", "3.9", "3.10", "3.10.1"))

# CRI gives every sandbox CPU shares and a lowered oom_score_adj. Lab hosts have neither cgroup v2 controllers nor
# CAP_SYS_RESOURCE, so those two wishes are dropped just before the real runc is run.
MODEST_RUNC = """#!/usr/bin/python3
import json, os, sys

for flag, directory in zip(sys.argv, sys.argv[1:]):
    if flag == "--bundle":
        path = os.path.join(directory, "config.json")
        with open(path) as file:
            config = json.load(file)
        config["linux"].pop("resources", None)
        config["process"].pop("oomScoreAdj", None)
        with open(path, "w") as file:
            json.dump(config, file)
os.execv("/usr/sbin/runc", ["runc", *sys.argv[1:]])
"""


def ran_through_the_stub(host: Host, engine: str) -> bool:
    """Start a container with no runtime named; whether the stub runtime's log says that it created it."""
    host.nsrun(f"rm -f {STUB_LOG}", check=True)
    write_image(host.path("/root/lab-image.tar"), *PAUSE, command=("/bin/sleep", "600"))
    if engine == "docker":
        host.nsrun("docker load -i /root/lab-image.tar", check=True)
        host.nsrun(f"docker run --rm --network none {PAUSE[0]} true", check=True)
    else:
        host.write("/usr/local/sbin/runc", MODEST_RUNC, 0o755)
        host.nsrun("ctr -n k8s.io images import /root/lab-image.tar", check=True)
        program = (Path(__file__).parent / "cri_pod.py").read_text()
        host.nsrun(f"python3 - {SOCKET}", input=program, check=True)
    return " create " in host.nsrun(f"cat {STUB_LOG}").stdout
