"""CDI on a real host: the toolkit's unit makes the specification, docker and containerd give out its devices."""

from __future__ import annotations

import json
from pathlib import Path

from . import workload
from .container_image import write_image
from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

HERE = Path(__file__).parent
ETC, RUN = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"
DEVICE = "nvidia.com/gpu=0"


def engines(host: Host) -> dict[str, str]:
    info = json.loads(host.nsrun("docker info --format '{{json .}}'", check=True).stdout)
    cri = host.nsrun("containerd config dump | sed -n 's/.*default_runtime_name = //p'", check=True).stdout
    return {"docker": info["DefaultRuntime"], "containerd": cri.strip(" '\"\n")}


def env_in_a_cri_container(host: Host) -> str:
    host.write("/usr/local/sbin/runc", workload.MODEST_RUNC, 0o755)
    host.nsrun("ctr -n k8s.io images import /root/lab-image.tar", check=True)
    for name in ("cri_pod.py", "cri_container.py"):
        host.write(f"/root/cri/{name}", (HERE / name).read_text())
    argv = f"python3 /root/cri/cri_container.py {workload.SOCKET} {workload.PAUSE[0]} {DEVICE}"
    return host.nsrun(argv, check=True).stdout


def test_cdi_without_a_new_default(lab: Lab, tmp_path: Path) -> None:
    """docker 28 and containerd 2.1 on one host; a specification of the driver before is found and moved away."""
    host = lab.host("debian-sid", gpu="h100", runtime="docker")
    me = Controller("ssh", tmp_path / "home")
    spec = tmp_path / "spec.yaml"
    spec.write_text("default: false\ncdi: true\n")
    setup = ("setup", "--yes", "--trust-key", lab.repo_fingerprint, "--spec", str(spec))
    host.write(ETC, host_spec("580.95.05"))

    expect(me.gpunode(host, *setup), 0)

    assert engines(host) == {"docker": "runc", "containerd": "runc"}
    assert not host.exists(ETC)
    kept = host.nsrun("grep -rl 580.95.05 /var/lib/gpunode/backup", check=True).stdout.split()
    assert host.read(kept[0]) == host_spec("580.95.05")
    assert "nvidia.com/gpu" in host.nsrun(f"cat {RUN}", check=True).stdout
    enabled = host.nsrun("systemctl is-enabled nvidia-cdi-refresh.path nvidia-cdi-refresh.service").stdout.split()
    assert enabled == ["enabled", "enabled"]

    write_image(host.path("/root/lab-image.tar"), *workload.PAUSE, command=("/bin/sleep", "600"))
    host.nsrun("docker load -i /root/lab-image.tar", check=True)
    run = f"docker run --rm --network none --device {DEVICE} {workload.PAUSE[0]} env"
    assert "LAB_GPU=0" in host.nsrun(run, check=True).stdout
    assert "LAB_GPU" not in host.nsrun(run.replace(f"--device {DEVICE}", ""), check=True).stdout
    assert "LAB_GPU=0" in env_in_a_cri_container(host)

    expect(me.gpunode(host, "check", "--spec", str(spec)), 0)
    again = expect(me.gpunode(host, *setup), 0)
    assert "no changes" in again.stdout

    shown = " ".join(expect(me.gpunode(host, "undo", "--dry-run", "--packages"), 0).stdout.split())
    assert "1 container with a CDI device of NVIDIA's: default/cdi" in shown


def host_spec(driver: str) -> str:
    """What nvidia-ctk left behind for another driver: its mounts do not exist."""
    mount = f"  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{driver}\n    containerPath: /x\n"
    return (
        "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
        'devices:\n- name: "0"\n  containerEdits:\n    env:\n    - LAB_GPU=old\n'
        f"containerEdits:\n  mounts:\n{mount}"
    )
