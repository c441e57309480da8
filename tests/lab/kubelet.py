"""A kubelet on a lab host, as kubeadm leaves it after a join; and the pods' image, without a registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import workload
from .container_image import write_image
from .control_plane import ControlPlane
from .host import Host

HERE = Path(__file__).parent
CONFIG = "/var/lib/kubelet/config.yaml"
DROP_IN = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
DEFAULTS = "/etc/default/kubelet"
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
KUBECONFIG = "/etc/kubernetes/kubelet.conf"
IDENTITY = "/var/lib/kubelet/pki/kubelet-client-current.pem"
PLUGINS = "/var/lib/kubelet/device-plugins"
IMAGE = "lab.example/workload:1"
PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
PAUSE = "k8s.gcr.io/pause:3.2"
# As packages of kubernetes.io have them.
UNIT = """[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
KUBEADM = (
    "[Service]\n"
    'Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf '
    f'--kubeconfig={KUBECONFIG}"\n'
    f'Environment="KUBELET_CONFIG_ARGS=--config={CONFIG}"\n'
    f"EnvironmentFile=-{FLAGS}\n"
    f"EnvironmentFile=-{DEFAULTS}\n"
    "ExecStart=\n"
    "ExecStart=/usr/bin/kubelet "
    "$KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n"
)
ENGINE_FLAGS = {
    "containerd": "--container-runtime=remote --container-runtime-endpoint=/run/containerd/containerd.sock",
    "docker": "--network-plugin=",
}
# What these engines of debian12 have by themselves: docker asks systemd where there is cgroup v2.
CGROUP_DRIVERS = {"containerd": "cgroupfs", "docker": "systemd"}
# The last five lines are for a lab host, which has neither controllers of cgroups nor a /proc/sys to write to.
SETTINGS = """apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
cgroupDriver: {driver}
kind: KubeletConfiguration
nodeStatusUpdateFrequency: 1s
staticPodPath: /etc/kubernetes/manifests
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
protectKernelDefaults: true
"""
# What the kubelet wants of the kernel's settings, put over them.
SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
# Else the kubelet waits ten seconds for the metadata of a cloud.
LAB = """[Service]
Environment=AWS_EC2_METADATA_DISABLED=true
ExecStartPre=/usr/local/lib/lab/sysctls
"""
OVER = """#!/bin/sh
[ -e /dev/kmsg ] || ln -s /dev/null /dev/kmsg
cd /usr/local/lib/lab/sysctl && find . -type f | while read -r name; do
  cmp -s "$name" "/proc/sys/$name" || mount --bind "$name" "/proc/sys/$name" || exit 1
done
"""
# Pods are on the host's network; the kubelet only wants to see that somebody has set up another.
CNI = """{"cniVersion": "0.4.0", "name": "lab", "plugins": [{"type": "bridge", "bridge": "cni0"}]}
"""


def furnish(host: Host, plane: ControlPlane, *, engine: str, extra: str = "") -> None:
    """Everything but the start; extra: KUBELET_EXTRA_ARGS."""
    plane.certify(host.name, f"/O=system:nodes/CN=system:node:{host.name}")
    host.write("/etc/kubernetes/pki/ca.crt", plane.file("ca.crt"))
    host.write(IDENTITY, plane.file(f"{host.name}.crt") + plane.file(f"{host.name}.key"), 0o600)
    kubeconfig = plane.kubeconfig(f"system:node:{host.name}", IDENTITY, IDENTITY, "/etc/kubernetes/pki/ca.crt")
    host.write(KUBECONFIG, kubeconfig, 0o600)
    host.path("/etc/kubernetes/manifests").mkdir(exist_ok=True)
    host.path("/root/images").mkdir()
    host.write(CONFIG, SETTINGS.format(driver=CGROUP_DRIVERS[engine]))
    host.write(FLAGS, f'KUBELET_KUBEADM_ARGS="{ENGINE_FLAGS[engine]} --pod-infra-container-image={PAUSE}"\n')
    host.write(DEFAULTS, f"KUBELET_EXTRA_ARGS={extra}\n")
    host.write("/lib/systemd/system/kubelet.service", UNIT)
    host.write(DROP_IN, KUBEADM)
    host.write(f"{DROP_IN.rpartition('/')[0]}/90-lab.conf", LAB)
    host.write("/usr/local/lib/lab/sysctls", OVER, 0o755)
    host.write("/etc/cni/net.d/10-lab.conflist", CNI)
    for name, value in SYSCTLS.items():
        host.write(f"/usr/local/lib/lab/sysctl/{name}", f"{value}\n")
    host.write("/usr/local/sbin/runc", workload.MODEST_RUNC, 0o755)
    # Each has a command of its own, and so an id: by that containerd knows a container's image.
    for name, tags in {"pause": (PAUSE, *workload.PAUSE), "workload": (IMAGE,), "plugin": (PLUGIN_IMAGE,)}.items():
        write_image(host.path(f"/root/images/{name}.tar"), *tags, command=("/bin/sh", "-c", "exec sleep 6000", name))
    host.write("/opt/lab/__init__.py", "")
    for name in ("cri_pod.py", "device_plugin.py"):
        host.write(f"/opt/lab/{name}", (HERE / name).read_text())
    load = "docker load -i" if engine == "docker" else "ctr -n k8s.io images import"
    host.nsrun(f"systemctl daemon-reload && for name in /root/images/*; do {load} $name || exit; done", check=True)


def pod(name: str, node: str, script: str, *, gpus: int = 0, handler: str | None = "nvidia") -> dict[str, Any]:
    """Bound to the node, on its network, of the image that is there."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container: dict[str, Any] = {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "resources": {"limits": limits},
    }
    spec = {"nodeName": node, "hostNetwork": True, "restartPolicy": "Never", "containers": [container]}
    if handler:
        spec["runtimeClassName"] = handler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def plugin(node: str, handler: str | None = "nvidia") -> dict[str, Any]:
    """As the DaemonSet of NVIDIA's device plugin makes it; its program is device_plugin.py with the host's Python."""
    made = pod("nvidia-device-plugin-daemonset-lab01", node, "", handler=handler)
    mounts = {"/usr": "/usr", "/usr/lib": "/lib", "/usr/lib64": "/lib64", "/opt/lab": "/opt/lab", PLUGINS: PLUGINS}
    made["metadata"]["namespace"] = "kube-system"
    made["spec"] |= {
        "restartPolicy": "Always",
        "volumes": [{"name": f"at{n}", "hostPath": {"path": path}} for n, path in enumerate(mounts)],
    }
    made["spec"]["containers"][0] |= {
        "name": "nvidia-device-plugin-ctr",
        "image": PLUGIN_IMAGE,
        "command": ["/usr/bin/python3", "-m", "lab.device_plugin"],
        "workingDir": "/opt",
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "FAIL_ON_INIT_ERROR", "value": "false"}],
        "volumeMounts": [{"name": f"at{n}", "mountPath": path} for n, path in enumerate(mounts.values())],
    }
    return made


RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}
