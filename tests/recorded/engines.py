"""Constructed hosts with engines other than docker and a plain containerd: CRI-O, k3s, rke2, k0s, microk8s, podman."""

from __future__ import annotations

import json

from tests.recorded.nouns import Engine, GpuModel, Recipe, debian, enterprise, ubuntu

V2, V3 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
L4 = GpuModel("27b8", "AD104GL [L4]", subsystem="10de:16ee", bar1_gib=32)
T4 = GpuModel("1eb8", "TU104GL [Tesla T4]", subsystem="10de:12a2")
A30 = GpuModel("20b7", "GA100GL [A30 PCIe]", 2, "10de:1532", bar1_gib=32)
A100 = GpuModel("20b2", "GA100 [A100 SXM4 80GB]", 4, "10de:1463", bar1_gib=128)
RTX4090 = GpuModel("2684", "AD102 [GeForce RTX 4090]", subsystem="1043:88e2", class_code="0x030000", bar1_gib=32)


def _cri(cdi: bool, systemd: bool, default: str) -> str:
    runc = {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": systemd}}
    runtimes = dict.fromkeys(("runc", default), runc)
    config = {"containerd": {"defaultRuntimeName": default, "runtimes": runtimes}, "enableCDI": cdi}
    return f"source=python3\n{json.dumps(config)}\n"


def dump(version: int, *, systemd: bool, default: str = "runc") -> str:
    plugin = V3 if version == 3 else V2
    text = f"""version = {version}

[plugins."{plugin}".containerd]
  default_runtime_name = "{default}"
  [plugins."{plugin}".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."{plugin}".containerd.runtimes.runc.options]
      SystemdCgroup = {str(systemd).lower()}
"""
    if default == "runc":
        return text
    return f"""{text}  [plugins."{plugin}".containerd.runtimes.{default}]
    runtime_type = "io.containerd.runc.v2"
    [plugins."{plugin}".containerd.runtimes.{default}.options]
      BinaryName = "/usr/bin/nvidia-container-runtime"
      SystemdCgroup = {str(systemd).lower()}
"""


def containerd_of(
    pid: int, version: str, config: str, socket: str, schema: int, *, systemd: bool = False, default: str = "runc"
) -> tuple[tuple[str, str], ...]:
    key, two = f"containerd:{pid}", version.startswith("2.")
    return (
        (f"{key}:files", f"{config}\n"),
        (f"{key}:version", f"containerd github.com/containerd/containerd{'/v2' if two else ''} v{version} 0\n"),
        (f"{key}:dump", dump(schema, systemd=systemd, default=default)),
        (f"{key}:cri", _cri(two, systemd, default)),
        ("sockets", f"{key} {socket}\n"),
    )


def rancher(
    name: str,
    unit: str,
    comm: str,
    version: str,
    containerd: str,
    config: tuple[tuple[str, str], ...],
    *,
    default: str = "runc",
    down: bool = False,
) -> Engine:
    """k3s or rke2 under systemd on cgroup v2, which they tell containerd and the kubelet. `down`: that one ends."""
    generated = f"/var/lib/rancher/{name}/agent/etc/containerd/config.toml"
    binary = f"/var/lib/rancher/{name}/data/0f9c/bin/containerd"
    verb = "agent" if "agent" in unit else "server"
    return Engine(
        units=((unit, 900, comm, f"/usr/local/bin/{name} {verb}"),),
        children=(
            (910, "containerd", 900, unit, f"{binary} -c {generated}"),
            *(((930, "kubelet", 900, unit, RKE2_KUBELET),) if name == "rke2" and not down else ()),
        ),
        sections=(
            *containerd_of(
                910, containerd, generated, "/run/k3s/containerd/containerd.sock", 3, systemd=True, default=default
            ),
            (f"{name}:version", f"{name} version v{version} (4ec9b7c1)\ngo version go1.24.6\n"),
            ("kubernetes", kubelet_of_rancher(name, down=down)),
        ),
        files=((generated, dump(3, systemd=True, default=default)), *config),
        tools=(f"/usr/local/bin/{name}",),
    )


def kubelet_of_rancher(name: str, *, down: bool = False) -> str:
    """Since 1.32 both have a directory of drop-ins with their own defaults; rke2's kubelet is a process of its own."""
    running = "running=1\n" if name == "rke2" and not down else ""
    state = f"/var/lib/rancher/{name}/agent"
    told = f"config=\nconfig-dir={state}/etc/kubelet.conf.d\nsettings=read\ncgroupDriver=systemd\nfailSwapOn=false\n"
    return f"mark=/etc/rancher/{name}\n{running}{told}kubeconfig={state}/kubelet.kubeconfig\n"


RKE2_KUBELET = (
    "/var/lib/rancher/rke2/data/v1.32.9-rke2r1/bin/kubelet --config-dir=/var/lib/rancher/rke2/agent/etc/kubelet.conf.d "
    "--kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig"
)
K3S_CONFIG = 'write-kubeconfig-mode: "0644"\ntoken: MASKED\nnode-label:\n  - accelerator=l4\n'
CRIO_PACKAGE = """[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
allowed_annotations = [
    "io.containers.trace-syscall",
]

[crio.runtime.runtimes.runc]
runtime_path = "/usr/libexec/crio/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/libexec/crio/conmon"
"""
K0S_KUBELET = (
    "mark=/etc/k0s\nrunning=1\nconfig=/var/lib/k0s/kubelet-config.yaml\nkubeconfig=/var/lib/k0s/kubelet.conf\n"
)
K0S_MANAGED = '# k0s_managed=true\nversion = 2\nimports = [\n\t"/run/k0s/containerd-cri.toml",\n]\n'
MICROK8S_ARGS = "/var/snap/microk8s/8148/args"
MICROK8S_KUBELET = """mark=/var/snap/microk8s/current
config=/var/lib/kubelet/config.yaml
kubeconfig=/var/snap/microk8s/current/credentials/kubelet.config
"""
MICROK8S_TOLD = """--kubeconfig=${SNAP_DATA}/credentials/kubelet.config
--root-dir=${SNAP_COMMON}/var/lib/kubelet
--fail-swap-on=false
--container-runtime-endpoint=${SNAP_COMMON}/run/containerd.sock
--containerd=${SNAP_COMMON}/run/containerd.sock
--node-labels="microk8s.io/cluster=true,node.kubernetes.io/microk8s-controlplane=microk8s-controlplane"
"""
MICROK8S_TEMPLATE = f"""# Use config version 2 to enable new configuration fields.
version = 2
oom_score = 0

[plugins."{V2}"]
  sandbox_image = "registry.k8s.io/pause:3.7"
  [plugins."{V2}".containerd]
    # snapshotter is the snapshotter used by containerd.
    snapshotter = "${{SNAPSHOTTER}}"
    default_runtime_name = "${{RUNTIME}}"
    [plugins."{V2}".containerd.runtimes.runc]
      runtime_type = "${{RUNTIME_TYPE}}"
"""

ENGINES = (
    Recipe(
        "ubuntu2404-k3s-l4",
        "one L4 in a k3s server",
        ubuntu("24.04", "noble", "6.8.0-51-generic"),
        (L4,),
        engine=rancher(
            "k3s", "k3s.service", "k3s-server", "1.33.5+k3s1", "2.1.4-k3s1",
            (("/etc/rancher/k3s/config.yaml", K3S_CONFIG),),
        ),
    ),
    Recipe(
        "ubuntu2204-rke2-a30",
        "2 × A30 in an rke2 agent whose config.yaml sets crun",
        ubuntu("22.04", "jammy", "5.15.0-161-generic"),
        (A30,),
        engine=rancher(
            "rke2", "rke2-agent.service", "rke2", "1.32.9+rke2r1", "2.0.5-k3s2",
            (("/etc/rancher/rke2/config.yaml", "server: https://10.0.0.1:9345\ndefault-runtime: crun\n"),),
        ),
    ),
    Recipe(
        "el9-crio-a100",
        "4 × A100 under CRI-O 1.33",
        enterprise("almalinux", "AlmaLinux", "9.6", "5.14.0-570.58.1.el9_6.x86_64"),
        (A100,),
        kubelet=True,
        engine=Engine(
            units=(("crio.service", 950, "crio", "/usr/bin/crio"),),
            sections=(
                (
                    "crio",
                    "config=/etc/crio/crio.conf\nfolder=/etc/crio/crio.conf.d\n"
                    "socket=/var/run/crio/crio.sock\nbinary=/usr/bin/crio\n",
                ),
                ("crio:version", "crio version 1.33.5\n"),
                ("crio:config", CRIO_PACKAGE),
            ),
            files=(("/etc/crio/crio.conf.d/10-crio.conf", CRIO_PACKAGE),),
            tools=("/usr/bin/crio",),
        ),
    ),
    Recipe(
        "debian12-k0s-a30",
        "2 × A30 in a k0s worker",
        debian("12", "bookworm", "6.1.0-41-amd64"),
        (A30,),
        engine=Engine(
            units=(("k0sworker.service", 900, "k0s", "/usr/local/bin/k0s worker --token-file=/etc/k0s/token"),),
            children=(
                (
                    910, "containerd", 900, "k0sworker.service",
                    "/var/lib/k0s/bin/containerd --root=/var/lib/k0s/containerd --state=/run/k0s/containerd "
                    "--address=/run/k0s/containerd.sock --config=/etc/k0s/containerd.toml",
                ),
                (
                    930, "kubelet", 900, "k0sworker.service",
                    "/var/lib/k0s/bin/kubelet --root-dir=/var/lib/k0s/kubelet "
                    "--config=/var/lib/k0s/kubelet-config.yaml --kubeconfig=/var/lib/k0s/kubelet.conf",
                ),
            ),
            sections=(
                *containerd_of(910, "1.7.28", "/etc/k0s/containerd.toml", "/run/k0s/containerd.sock", 2),
                ("k0s:version", "v1.33.5+k0s.0\n"),
                ("kubernetes", f"{K0S_KUBELET}settings=read\ncgroupDriver=cgroupfs\nfailSwapOn=false\n"),
            ),
            files=(("/etc/k0s/containerd.toml", K0S_MANAGED),),
            tools=("/usr/local/bin/k0s",),
        ),
    ),
    Recipe(
        "ubuntu2204-microk8s-t4",
        "one T4 in microk8s 1.33",
        ubuntu("22.04", "jammy", "5.15.0-161-generic"),
        (T4,),
        engine=Engine(
            units=(
                (
                    "snap.microk8s.daemon-containerd.service", 910, "containerd",
                    f"/snap/microk8s/8148/bin/containerd --config {MICROK8S_ARGS}/containerd.toml "
                    "--address /var/snap/microk8s/common/run/containerd.sock",
                ),
                ("snap.microk8s.daemon-kubelite.service", 920, "kubelite", "/snap/microk8s/8148/kubelite"),
            ),
            sections=(
                *containerd_of(
                    910, "1.7.28", f"{MICROK8S_ARGS}/containerd.toml",
                    "/var/snap/microk8s/common/run/containerd.sock", 2,
                ),
                ("microk8s:version", "MicroK8s v1.33.5\n"),
                ("kubernetes", MICROK8S_KUBELET),
            ),
            files=(
                ("/var/snap/microk8s/current/args/containerd-template.toml", MICROK8S_TEMPLATE),
                ("/var/snap/microk8s/current/args/kubelet", MICROK8S_TOLD),
            ),
            tools=("/usr/bin/snap",),
        ),
    ),
    Recipe(
        "debian13-podman-rtx4090",
        "a workstation: RTX 4090 and podman, made the default by name",
        debian("13", "trixie", "6.12.57+deb13-amd64"),
        (RTX4090,),
        engine=Engine(
            sections=(("podman", "podman version 5.4.2\ndefault=crun\n"),),
            files=(("/etc/containers/containers.conf", '[engine]\nruntime = "crun" # measured\n'),),
            tools=("/usr/bin/podman",),
        ),
        options=("--runtime", "podman"),
    ),
    Recipe(
        "debian13-podman-l4",
        "one L4 and podman, which CDI serves",
        debian("13", "trixie", "6.12.57+deb13-amd64"),
        (L4,),
        engine=Engine(sections=(("podman", "podman version 5.4.2\ndefault=crun\n"),), tools=("/usr/bin/podman",)),
    ),
    Recipe(
        "ubuntu2404-podman-l4",
        "one L4 and podman 4.9.3, which reads CDI specifications before version 0.7 only",
        ubuntu("24.04", "noble", "6.8.0-87-generic"),
        (L4,),
        engine=Engine(sections=(("podman", "podman version 4.9.3\ndefault=crun\n"),), tools=("/usr/bin/podman",)),
    ),
)  # fmt: skip
