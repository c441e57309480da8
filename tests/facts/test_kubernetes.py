"""What the probe sees of a kubelet, its device plugins and its node, from a fake root to facts."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.kubelet import passed_on
from gpunode.facts.kubernetes import kubernetes_of
from gpunode.facts.processes import Process
from gpunode.facts.wire import Section, Sections, file_facts
from gpunode.model.facts import HostFacts
from gpunode.model.kubernetes import Gate, PluginPod
from tests.cluster.api_server import Authority
from tests.facts.hosts import ROOTS, in_namespaces, make_root, run_probe

UUID = "GPU-5f1c2a90-7d11-4c3e-9a7e-0123456789ab"
STATE = "var/lib/kubelet"
CONTAINER = "5f" * 32
POD = "kube-system_nvidia-device-plugin-daemonset-x7x2k"
UID = "7c1a9b1e-0000-4000-8000-000000000001"
CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
cgroupDriver: systemd # as containerd's
evictionHard:
  cpuManagerPolicy: none
featureGates:
  # switched on for all
  DevicePlugins: true
  "NodeSwap": false
failSwapOn: false
staticPodURLHeader:
  Authorization: ["Bearer hunter2"]
topologyManagerPolicy: 'best-effort'
"""
CHECKPOINT = (
    '{"Data":{"PodDeviceEntries":[{"PodUID":"p","ContainerName":"c","ResourceName":"nvidia.com/gpu","DeviceIDs":'
    '{"-1":["x"]},"AllocResp":"aHVudGVyMg=="}],"RegisteredDevices":{"nvidia.com/gpu":["'
    + UUID
    + '"],"rdma/hca":null}},'
    '"Checksum":1}'
)
MADE = (
    '{"ociVersion":"1.1.0","process":{"args":["nvidia-device-plugin","--device-list-strategy=cdi-cri"],"env":['
    '"PASS_DEVICE_SPECS=true","DB_PASSWORD=hunter2"]},"annotations":{"io.kubernetes.cri.image-name":'
    '"nvcr.io/nvidia/k8s-device-plugin:v0.18.0"}}'
)
FILES = {
    "etc/kubernetes/kubelet.conf": "users:\n- name: default-auth\n  user:\n    client-certificate: /pki/current.pem\n",
    f"{STATE}/config.yaml": CONFIG,
    f"{STATE}/config.d/10-a.conf": "cpuManagerPolicy: none\n",
    f"{STATE}/config.d/20-b.conf": "cpuManagerPolicy: static\nfeatureGates: {MemoryQoS: true}\n",
    f"{STATE}/device-plugins/kubelet_internal_checkpoint": CHECKPOINT,
    f"{STATE}/pods/{UID}/etc-hosts": "",
    f"var/log/pods/{POD}_{UID}/nvidia-device-plugin-ctr/0.log": "starting\n",
    f"var/log/pods/{POD}_{UID}/nvidia-device-plugin-ctr/3.log": "No devices found. Waiting indefinitely\n",
    f"var/log/pods/{POD}-gone_0/nvidia-device-plugin-ctr/0.log": "",
    "run/nvidia/validations/driver-ready": "",
    f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{CONTAINER}/config.json": MADE,
    "proc/700/comm": "kubelet\n",
    "proc/700/status": "Name:\tkubelet\nPPid:\t1\n" + ROOTS,
    "proc/700/cgroup": "0::/system.slice/kubelet.service\n",
    "proc/700/cmdline": "/usr/bin/kubelet\0--config-dir\0/var/lib/kubelet/config.d\0"
    "--kubeconfig=/etc/kubernetes/kubelet.conf\0"
    "--feature-gates=Accelerators=true,NodeSwap=true\0--node-labels=alpha.kubernetes.io/nvidia-gpu-name=K80,a=b\0",
    "proc/4711/comm": "nvidia-device-p\n",
    "proc/4711/status": "Name:\tnvidia-device-p\nPPid:\t1\n" + ROOTS,
    "proc/4712/comm": "nvidia-device-p\n",  # anybody may give a process this name
    "proc/4712/status": "Name:\tnvidia-device-p\nPPid:\t1\n" + ROOTS.replace("\t0", "\t1000"),
    "proc/4712/cgroup": "0::/user.slice\n",
    "proc/4711/cgroup": f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{CONTAINER}.scope\n",
}
KUBECTL = """#!/bin/sh
case "$*" in *'--kubeconfig '*'/etc/kubernetes/kubelet.conf '*' -- gpu07') ;; *) echo "asked: $*" >&2; exit 1 ;; esac
cat <<'END'
capacity=nvidia.com/gpu 1
allocatable=nvidia.com/gpu 0
condition=Ready True KubeletReady
taint=NoSchedule nvidia.com/gpu
label=nvidia.com/gpu.count 1
unschedulable=1
END
"""
TOOLS = {"kubelet": "#!/bin/sh\necho 'Kubernetes v1.31.4'\n", "kubectl": KUBECTL}


@pytest.fixture(params=[("dash",), ("bash", "--posix"), ("busybox", "ash")], ids=" ".join)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


def listening(root: Path, *names: str) -> None:
    """Unix sockets of these names in the kubelet's directory; a path of theirs may have 107 bytes at most."""
    before = Path.cwd()
    for name in names:
        path = root / STATE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.chdir(path.parent)
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(path.name)
        finally:
            os.chdir(before)


def machine(root: Path, files: Mapping[str, str] = FILES, tools: Mapping[str, str] = TOOLS) -> Path:
    make_root(root, dict(tools))
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    if "proc/700/comm" in files:
        in_namespaces(root, "700")
        (root / "proc/700/exe").symlink_to("/usr/bin/kubelet")
    sockets = ("device-plugins/kubelet.sock", "device-plugins/nvidia-gpu.sock", "pod-resources/kubelet.sock",
               "plugins_registry/gpu.nvidia.com-reg.sock", "device-plugins/other.sock")  # fmt: skip
    listening(root, *sockets)
    return root


def probed(root: Path, shell: tuple[str, ...] = ("sh",)) -> HostFacts:
    stream = run_probe(shell, root).stdout
    assert b"hunter2" not in stream.partition(b"@ kubernetes")[2].partition(b"\n@ ")[0]
    return assemble(stream, "gpu07")


def test_every_shell_sees_the_same_node(shell: tuple[str, ...], tmp_path: Path) -> None:
    kubernetes = probed(machine(tmp_path), shell).kubernetes
    assert (kubernetes.distribution, kubernetes.running, kubernetes.version) == ("kubeadm", True, "1.31.4")
    assert (kubernetes.kubelet_cgroup_driver, kubernetes.starts_with_swap) == ("systemd", True)
    assert kubernetes.flags == ("config-dir", "kubeconfig", "feature-gates", "node-labels")
    assert (kubernetes.node_name, kubernetes.kubeconfig) == ("gpu07", "/etc/kubernetes/kubelet.conf")
    settings, plugins, node = kubernetes.settings, kubernetes.device_plugins, kubernetes.node
    assert settings
    assert plugins
    assert node
    file = "featureGates of /var/lib/kubelet/config.yaml"
    assert dict(settings.gates) == {
        "Accelerators": Gate(True, "--feature-gates"), "NodeSwap": Gate(True, "--feature-gates"),
        "DevicePlugins": Gate(True, file), "MemoryQoS": Gate(True, file),
    }  # fmt: skip
    assert (settings.cpu_manager, settings.topology_manager, settings.unread) == ("static", "best-effort", None)
    assert settings.node_labels == ("alpha.kubernetes.io/nvidia-gpu-name", "a")
    assert (plugins.directory, plugins.kubelet_socket) == ("/var/lib/kubelet/device-plugins", True)
    assert (dict(plugins.sockets), plugins.pod_resources) == ({"nvidia-gpu.sock": True}, True)
    assert dict(plugins.registered or {}) == {"nvidia.com/gpu": (UUID,), "rdma/hca": ()}
    assert plugins.pods == (PluginPod(POD, "nvidia-device-plugin-ctr", 3),)
    assert (plugins.processes, plugins.image) == ((4711,), "nvcr.io/nvidia/k8s-device-plugin:v0.18.0")
    assert plugins.options == {"PASS_DEVICE_SPECS": "true", "DEVICE_LIST_STRATEGY": "cdi-cri"}
    assert (plugins.said, plugins.dra) == ("No devices found", frozenset({"gpu.nvidia.com"}))
    assert plugins.validations == frozenset({"driver-ready"})
    assert (node.capacity, node.allocatable) == ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "0"})
    assert (node.conditions, node.unschedulable) == ({"Ready": "True KubeletReady"}, True)
    assert (node.taints, node.labels) == (("NoSchedule nvidia.com/gpu",), {"nvidia.com/gpu.count": "1"})


def test_a_socket_from_before_the_kubelets_is_of_a_plugin_that_missed_its_start(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    root = machine(tmp_path)
    os.utime(root / STATE / "device-plugins/nvidia-gpu.sock", (1_000_000_000, 1_000_000_000))
    plugins = probed(root, shell).kubernetes.device_plugins
    assert plugins
    assert dict(plugins.sockets) == {"nvidia-gpu.sock": False}


def without(*names: str) -> dict[str, str]:
    return {name: text for name, text in FILES.items() if not name.startswith(names)}


def test_of_a_kubelet_that_does_not_run_its_units_files_tell_what_it_would_be_told(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    flags = {
        f"{STATE}/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--x=1 --feature-gates=Accelerators=true"\n',
        "etc/default/kubelet": "#KUBELET_X=--cpu-manager-policy=none\nKUBELET_EXTRA_ARGS=--node-labels=a/b=c\n",
        "etc/systemd/system/kubelet.service.d/20.conf": "[Service]\n"
        'Environment="KUBELET_X_ARGS=--topology-manager-policy restricted"\n',
    }
    kubernetes = probed(machine(tmp_path, without("proc/700") | flags), shell).kubernetes
    settings = kubernetes.settings
    assert kubernetes.flags is None
    assert settings
    assert settings.gates["Accelerators"] == Gate(True, "--feature-gates")
    assert (settings.node_labels, settings.topology_manager) == (("a/b",), "restricted")


@pytest.mark.parametrize(
    ("flag", "config", "endpoint"),
    [
        ("--container-runtime-endpoint=unix:///run/a.sock\0", "", "unix:///run/a.sock"),
        ("", "containerRuntimeEndpoint: 'unix:///run/b.sock'\n", "unix:///run/b.sock"),
        ("--container-runtime-endpoint\0/run/a\0", "containerRuntimeEndpoint: unix:///run/b.sock\n", "/run/a"),
        ("", "", None),
        ("", 'containerRuntimeEndpoint: ""\n', None),
    ],
    ids=["a flag", "in its configuration", "the flag goes before", "neither", "empty"],
)  # fmt: skip
def test_the_socket_that_the_kubelet_asks(
    shell: tuple[str, ...], tmp_path: Path, flag: str, config: str, endpoint: str | None
) -> None:
    told = {"proc/700/cmdline": FILES["proc/700/cmdline"] + flag, f"{STATE}/config.yaml": CONFIG + config}
    settings = probed(machine(tmp_path, FILES | told), shell).kubernetes.settings
    assert settings
    assert settings.endpoint == endpoint


def test_the_files_that_decide_how_it_starts_are_in_the_answer_whole(shell: tuple[str, ...], tmp_path: Path) -> None:
    told = {
        f"{STATE}/config.d/10.conf": "featureGates:\n  A: true\n",
        f"{STATE}/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--x=1"\n',
        "etc/default/kubelet": "KUBELET_EXTRA_ARGS=--container-runtime=remote\n",
        "etc/systemd/system/kubelet.service.d/20.conf": "[Service]\n",
        "etc/systemd/system/k3s-agent.service.d/50-gpunode.conf": "[Service]\nExecStartPre=/bin/true\n",
        "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nExecStart=/usr/bin/kubelet\n",
    }
    host = probed(machine(tmp_path, FILES | told), shell)
    assert {path: host.file(f"/{path}").text for path in told} == told
    settings = host.kubernetes.settings
    assert settings
    assert (settings.config, settings.config_dir) == (f"/{STATE}/config.yaml", f"/{STATE}/config.d")
    assert host.file(f"/{STATE}/config.yaml").text == FILES[f"{STATE}/config.yaml"]


@pytest.mark.parametrize(
    ("config", "gates", "unread"),
    [
        ('{\n  "kind": "KubeletConfiguration",\n  "featureGates": {\n    "A": true,\n    "B": false\n  },\n'
         '  "cgroupDriver": "systemd"\n}\n', {"A", "B"}, None),
        ('{"kind": "KubeletConfiguration", "featureGates": {"A": true}}', set(), "/var/lib/kubelet/config.yaml"),
        ("featureGates:\n    A: true\nx: y\n    B: true\n", {"A"}, None),
        ("\tfeatureGates: }{\n\0\n: :\n- -\n", set(), None),
    ],
    ids=["JSON in lines", "JSON in one line", "another map", "no configuration"],
)  # fmt: skip
def test_a_configuration_is_read_or_said_to_be_unread(
    config: str, gates: set[str], unread: str | None, tmp_path: Path
) -> None:
    files = without("proc/700", f"{STATE}/config.d") | {f"{STATE}/config.yaml": config}
    settings = probed(machine(tmp_path, files)).kubernetes.settings
    assert settings
    assert (set(settings.gates), settings.unread) == (gates, unread)


@pytest.mark.parametrize(
    ("files", "tools", "why"),
    [
        (without("etc/kubernetes"), TOOLS, "no kubeconfig of the kubelet"),
        (FILES, {"kubelet": TOOLS["kubelet"]}, "no kubectl of root"),
        (
            {**FILES, "etc/kubernetes/kubelet.conf": "users:\n- user:\n    exec:\n      command: aws\n"},
            TOOLS,
            "not run",
        ),
        (FILES, {**TOOLS, "kubectl": "#!/bin/sh\necho 'nodes \"gpu07\" not found' >&2\nexit 1\n"}, "not found"),
    ],
    ids=["no kubeconfig", "no kubectl", "a program that gets its token", "a node of another name"],
)
def test_why_the_node_is_not_known_is_told(
    files: Mapping[str, str], tools: Mapping[str, str], why: str, tmp_path: Path
) -> None:
    host = probed(machine(tmp_path, files, tools))
    assert host.kubernetes.node is None
    assert why in host.unread["node"]


def test_what_others_may_write_is_not_believed(tmp_path: Path) -> None:
    root = machine(tmp_path)
    for name in (
        f"{STATE}/config.yaml",
        "etc/kubernetes/kubelet.conf",
        f"{STATE}/device-plugins/kubelet_internal_checkpoint",
    ):
        (root / name).chmod(0o666)
    host = probed(root)
    settings, plugins = host.kubernetes.settings, host.kubernetes.device_plugins
    assert settings
    assert plugins
    assert (settings.unread, plugins.registered, host.kubernetes.node) == ("/var/lib/kubelet/config.yaml", None, None)
    assert "may be written by everybody" in host.unread["node"]


@pytest.mark.parametrize(
    ("text", "joined"),
    [("mark=/etc/kubernetes/manifests\nrunning=1", False), ("mark=/etc/kubernetes/kubelet.conf", True),
     ("mark=/etc/rancher/k3s", True), ("kubeconfig=/var/lib/kubelet/kubeconfig", True)],
    ids=["the package alone", "kubeadm", "k3s", "a cloud's own place"],
)  # fmt: skip
def test_a_kubelet_with_a_kubeconfig_belongs_to_a_cluster(text: str, joined: bool) -> None:
    assert kubernetes_of(Sections({"kubernetes": Section(f"{text}\n")})).joined is joined


def test_a_host_without_kubernetes_is_asked_nothing(tmp_path: Path) -> None:
    host = assemble(run_probe(("sh",), make_root(tmp_path)).stdout, "gpu07")
    assert (host.kubernetes.settings, host.kubernetes.device_plugins, host.kubernetes.node) == (None, None, None)
    assert "node" not in host.unread


K3S = (
    'kubelet-arg:\n- feature-gates=A=true\n- "cpu-manager-policy=static"\nkube-apiserver-arg:\n- feature-gates=B=true\n'
)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/rancher/k3s/config.yaml", K3S),
        (
            "/etc/rancher/rke2/config.yaml.d/10.yaml",
            'kubelet-arg+: ["feature-gates=A=true", "cpu-manager-policy=static"]\n',
        ),
        ("/var/snap/microk8s/current/args/kubelet", "--feature-gates=A=true\n--cpu-manager-policy=static\n# --x\n"),
    ],
)
def test_what_a_distribution_passes_on_is_the_kubelets(path: str, text: str) -> None:
    sections = Sections({"kubernetes": Section("mark=/x\n")}, {path: file_facts(path, text)})
    settings = kubernetes_of(sections).settings
    assert settings
    assert (set(settings.gates), settings.cpu_manager) == ({"A"}, "static")


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("--mig-strategy", "single", "--pass-device-specs"), {"PASS_DEVICE_SPECS": "true", "MIG_STRATEGY": "single"}),
        (("--device-list-strategy", "cdi-cri", "--x", "y"), {"DEVICE_LIST_STRATEGY": "cdi-cri"}),
        (("--config-file=/config/a.yaml", "--mig-strategy"), {"CONFIG_FILE": "/config/a.yaml"}),
    ],
    ids=["and one that needs none", "another follows", "no value: not known"],
)
def test_a_flag_of_the_plugin_and_its_value_may_be_two_words(
    words: tuple[str, ...], options: dict[str, str], shell: tuple[str, ...], tmp_path: Path
) -> None:
    made = json.dumps({"process": {"args": ["nvidia-device-plugin", *words], "env": []}}, separators=(",", ":"))
    path = f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{CONTAINER}/config.json"
    plugins = probed(machine(tmp_path, FILES | {path: made}), shell).kubernetes.device_plugins
    assert plugins
    assert plugins.options == options


AGENT = "var/lib/rancher/k3s/agent"
BY_K3S = {
    **{name: text for name, text in FILES.items() if not name.startswith(("etc/kubernetes", "proc/700"))},
    "proc/700/comm": "k3s-server\n",
    "proc/700/status": "Name:\tk3s-server\nPPid:\t1\n" + ROOTS,
    "proc/700/cgroup": "0::/system.slice/k3s.service\n",
    "proc/700/cmdline": "/usr/local/bin/k3s server\0",  # it erases its arguments
    "etc/rancher/k3s/config.yaml": "with-node-id: true\n",
    f"{AGENT}/kubelet.kubeconfig": "users:\n- name: user\n  user:\n    client-certificate: client-kubelet.crt\n",
}


@pytest.mark.parametrize("name", ["gpu07", "gpu-rack3-07-1f3a0c9d", "n0", "a" * 52])
def test_a_node_of_k3s_has_the_name_in_its_certificate(name: str, shell: tuple[str, ...], tmp_path: Path) -> None:
    """--node-name, K3S_NODE_NAME and --with-node-id make it another than the host's."""
    authority = Authority()
    certificate, _ = authority.certify(f"system:node:{name}", "system:nodes")
    files = {**BY_K3S, f"{AGENT}/client-kubelet.crt": certificate + authority.pem}
    assert probed(machine(tmp_path, files, {"kubectl": KUBECTL}), shell).kubernetes.node_name == name


@pytest.mark.parametrize(
    ("certificate", "why"),
    [(None, "client-kubelet.crt is not there, and has the node's name"),
     ("nothing of it\n", "no certificate of a node"), ("system:admin", "no certificate of a node"),
     ("system:node:gpu 07", "no certificate of a node")],
    ids=["missing", "no certificate", "a person's", "another name"],
)  # fmt: skip
def test_the_name_of_a_node_of_k3s_is_not_guessed(
    certificate: str | None, why: str, shell: tuple[str, ...], tmp_path: Path
) -> None:
    text = Authority().certify(certificate)[0] if certificate and ":" in certificate else certificate
    files = BY_K3S if text is None else {**BY_K3S, f"{AGENT}/client-kubelet.crt": text}
    host = probed(machine(tmp_path, files, {"kubectl": KUBECTL}), shell)
    assert (host.kubernetes.node_name, host.kubernetes.node) == (None, None)
    assert why in host.unread["node"]


TWICE = (
    "--cgroup-driver=cgroupfs",
    "--fail-swap-on=true",
    "--cpu-manager-policy=none",
    "--feature-gates=A=true,B=true",
    "--node-labels=a=b",
    "--network-plugin=cni",
    "--cgroup-driver",
    "systemd",
    "--fail-swap-on=false",
    "--cpu-manager-policy=static",
    "--feature-gates=B=false",
    "--node-labels=alpha.kubernetes.io/x=y",
)


def test_of_a_flag_that_comes_twice_the_last_counts_and_maps_are_joined(shell: tuple[str, ...], tmp_path: Path) -> None:
    """kubeadm's unit ends with $KUBELET_EXTRA_ARGS, where people say otherwise."""
    told = "\0".join(("/usr/bin/kubelet", "--kubeconfig=/etc/kubernetes/kubelet.conf", *TWICE, ""))
    kubernetes = probed(machine(tmp_path, FILES | {"proc/700/cmdline": told}), shell).kubernetes
    settings = kubernetes.settings
    assert settings
    assert (kubernetes.kubelet_cgroup_driver, kubernetes.starts_with_swap, settings.cpu_manager) == (
        "systemd",
        True,
        "static",
    )
    assert {name: settings.gates[name].on for name in ("A", "B")} == {"A": True, "B": False}
    assert settings.node_labels == ("a", "alpha.kubernetes.io/x")


def test_what_k3s_is_told_twice_is_told_its_kubelet_twice() -> None:
    words = ("feature-gates=A=true", "cpu-manager-policy=none", "feature-gates=B=true", "cpu-manager-policy=static")
    path, text = "/etc/rancher/k3s/config.yaml", "kubelet-arg:\n" + "".join(f"- {word}\n" for word in words)
    sections = Sections({"kubernetes": Section("mark=/x\n")}, {path: file_facts(path, text)})
    settings = kubernetes_of(sections).settings
    assert settings
    assert (set(settings.gates), settings.cpu_manager) == ({"A", "B"}, "static")
    server = Process(pid=7, ppid=1, comm="k3s-server", argv=("k3s", "server", "--kubelet-arg=feature-gates=C=true"))
    assert passed_on(sections, (server,))["feature-gates"] == "C=true", "the command line's list takes the file's place"


def test_device_plugins_are_where_every_kubelet_has_them_whatever_its_root_directory(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    own = "var/lib/k0s/kubelet"
    told = FILES["proc/700/cmdline"] + f"\0--root-dir=/{own}"
    files = without(f"{STATE}/pods") | {"proc/700/cmdline": told, f"{own}/pods/{UID}/etc-hosts": ""}
    root = machine(tmp_path, files)
    plugins = probed(root, shell).kubernetes.device_plugins
    assert plugins
    assert (plugins.directory, plugins.kubelet_socket) == ("/var/lib/kubelet/device-plugins", True)
    assert (dict(plugins.sockets), plugins.pod_resources) == ({"nvidia-gpu.sock": True}, False)
    (root / own / "pod-resources").mkdir()
    (root / STATE / "pod-resources/kubelet.sock").rename(root / own / "pod-resources/kubelet.sock")
    plugins = probed(root, shell).kubernetes.device_plugins
    assert plugins
    assert plugins.pod_resources


@pytest.mark.parametrize(
    ("name", "comm"), [("k3s", "k3s-agent"), ("rke2", "rke2"), ("k3s", ""), ("rke2", "")],
    ids=["k3s", "rke2", "a k3s that is down", "an rke2 that is down"],
)  # fmt: skip
def test_a_kubelet_of_ranchers_has_a_directory_and_no_file_of_kubeadms(
    name: str, comm: str, shell: tuple[str, ...], tmp_path: Path
) -> None:
    drop_ins = f"var/lib/rancher/{name}/agent/etc/kubelet.conf.d"
    files = without("proc/700", "etc/kubernetes") | {
        f"etc/rancher/{name}/config.yaml": "token: x\n",
        f"{drop_ins}/00-{name}-defaults.conf": "cgroupDriver: systemd\n",
        f"{drop_ins}/50-site.conf": "featureGates:\n  CPUManager: true\n",
        "proc/700/comm": f"{comm or 'sleep'}\n",
        "proc/700/status": f"Name:\t{comm}\nPPid:\t1\n" + ROOTS,
        "proc/700/cgroup": f"0::/system.slice/{name}.service\n",
        "proc/700/cmdline": f"/usr/local/bin/{name}\0agent\0",
    }
    root = machine(tmp_path, files, {})
    (root / "proc/700/exe").unlink()
    (root / "proc/700/exe").symlink_to(f"/usr/local/bin/{name}")
    (root / f"usr/local/bin/{name}").parent.mkdir(parents=True, exist_ok=True)
    (root / f"usr/local/bin/{name}").write_text("")
    (root / f"usr/local/bin/{name}").chmod(0o755)
    host = probed(root, shell)
    settings = host.kubernetes.settings
    assert settings
    assert set(settings.gates) == {"CPUManager"}
    assert (settings.config, settings.config_dir) == (None, f"/{drop_ins}")
    assert host.file(f"/{drop_ins}/50-site.conf").text
    assert (host.kubernetes.kubelet, host.kubernetes.running) == (bool(comm), comm == "k3s-agent")


@pytest.mark.parametrize("line", ["version: v1.35.6", "version: 'v1.35.6'", 'version: "v1.35.6"'])
@pytest.mark.parametrize("place", ["snap", "var/lib/snapd/snap"])
def test_microk8s_release_is_that_of_its_snap(line: str, place: str, shell: tuple[str, ...], tmp_path: Path) -> None:
    files = {
        "var/snap/microk8s/current/args/kubelet": "--x=1\n",
        f"{place}/microk8s/current/meta/snap.yaml": f"name: microk8s\n{line}\nsummary: x\n",
    }
    assert probed(machine(tmp_path, files, {}), shell).kubernetes.version == "1.35.6"


def test_a_snap_without_a_version_says_nothing(tmp_path: Path) -> None:
    files = {"snap/microk8s/current/meta/snap.yaml": "name: microk8s\n"}
    assert probed(machine(tmp_path, files, {})).kubernetes.version is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/rancher/k3s/config.yaml", 'kubelet-arg:\n- "fail-cgroupv1=false"\n'),
        ("/var/snap/microk8s/current/args/kubelet", '--fail-cgroupv1="false"\n'),
    ],
)
def test_a_distribution_may_let_its_kubelet_start_on_cgroup_v1(path: str, text: str) -> None:
    def starts(text: str) -> bool:
        sections = Sections({"kubernetes": Section("mark=/x\n")}, {path: file_facts(path, text)})
        return kubernetes_of(sections).starts_on_cgroup_v1

    assert starts(text)
    assert not starts(text.replace("false", "true"))


def test_quotes_of_microk8s_arguments_are_no_part_of_a_label() -> None:
    path = "/var/snap/microk8s/current/args/kubelet"
    text = '--node-labels="alpha.kubernetes.io/nvidia-gpu-name=T4,microk8s.io/cluster=true"\n'
    sections = Sections({"kubernetes": Section("mark=/x\n")}, {path: file_facts(path, text)})
    settings = kubernetes_of(sections).settings
    assert settings
    assert settings.node_labels == ("alpha.kubernetes.io/nvidia-gpu-name", "microk8s.io/cluster")


@pytest.mark.parametrize(
    "text",
    [
        "registered={\nsocket=2 nvidia\nsocket=1 a b\npod=x\npod=a b 9999999\nplugin=x\nimage=\nregistry=x",
        "registered=[]\nimage=" + "x" * 301,
        'registered={"nvidia.com/gpu":' + "[" * 500,
    ],
    ids=["no values", "another form", "deep"],
)
def test_odd_lines_are_not_known(text: str) -> None:
    plugins = kubernetes_of(Sections({"kubernetes": Section(f"plugins=/d\n{text}\n")})).device_plugins
    assert plugins
    assert (plugins.registered, plugins.sockets, plugins.processes, plugins.image) == (None, {}, (), None)


def test_a_plugin_of_network_cards_is_not_the_one_of_gpus() -> None:
    """As NVIDIA's Network Operator registers cards: resource prefix nvidia.com, and a socket of that name."""
    cards = 'plugins=/d\nsocket=1 nvidia.com_hostdev.sock\nregistered={"nvidia.com/hostdev":["0000:5e:00.0"]'
    for text, sockets, resources in (
        (f"{cards}}}\n", {}, {}),
        (
            f'{cards},"nvidia.com/mig-1g.10gb":["MIG-1"]}}\nsocket=1 nvidia-mig-1g.10gb.sock\n',
            {"nvidia-mig-1g.10gb.sock": True},
            {"nvidia.com/mig-1g.10gb": ("MIG-1",)},
        ),
    ):
        plugins = kubernetes_of(Sections({"kubernetes": Section(text)})).device_plugins
        assert plugins
        assert (plugins.sockets, plugins.resources) == (sockets, resources)
        assert plugins.here is bool(sockets)


@pytest.mark.parametrize(
    ("name", "legal"),
    [("gpu07", True), ("gpu-07.example.org", True), ("-o=json", False), ("GPU07", False), ("a/b", False), ("", False),
     ("a" * 254, False)],
)  # fmt: skip
def test_a_node_is_asked_for_by_a_legal_name_alone(name: str, legal: bool) -> None:
    sections = Sections({"kubernetes": Section(f"node-name={name}\n")})
    assert kubernetes_of(sections).node_name == (name if legal else None)


def test_the_operators_pod_of_the_driver_owns_it_before_it_has_a_root(tmp_path: Path) -> None:
    root = machine(tmp_path)
    assert not probed(root, ("sh",)).driver.container
    pod, uid = "gpu-operator_nvidia-driver-daemonset-5hx9w", "0f8c1c52-8a5e-4a6f-9f1e-3f0a2b7d9c11"
    (root / f"var/log/pods/{pod}_{uid}/nvidia-driver-ctr").mkdir(parents=True)
    (root / f"var/lib/kubelet/pods/{uid}").mkdir(parents=True)
    assert probed(root, ("sh",)).driver.container
