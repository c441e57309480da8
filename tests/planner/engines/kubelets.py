"""Constructed nodes whose kubelet has been told something, by the files of each mechanism."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from gpunode.model.facts import HostFacts, KubernetesFacts, RuntimeFacts, ServiceFacts
from gpunode.model.files import FileFacts
from gpunode.model.kubernetes import DevicePlugins, Gate, KubeletSettings, NodeFacts
from tests.planner.builders import L4, host

CONFIG = "/var/lib/kubelet/config.yaml"
FLAGS_ENV = "/var/lib/kubelet/kubeadm-flags.env"
DEFAULT = "/etc/default/kubelet"
DROP_IN = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
PACKAGED = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
KUBEADM = f"""[Service]
Environment="KUBELET_CONFIG_ARGS=--config={CONFIG}"
EnvironmentFile=-{FLAGS_ENV}
EnvironmentFile=-{DEFAULT}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""
DOCKER = RuntimeFacts(
    "docker", "17.03.2", "/etc/docker/daemon.json", "docker.service", "/var/run/docker.sock", active=True
)
DOWN = ServiceFacts("loaded", "activating", "auto-restart", "enabled")
UP = ServiceFacts("loaded", "active", "running", "enabled")
OWN_UNITS = {
    "k3s": "k3s-agent.service",
    "rke2": "rke2-agent.service",
    "k0s": "k0sworker.service",
    "microk8s": "snap.microk8s.daemon-kubelite.service",
}
WELL = DevicePlugins("/var/lib/kubelet/device-plugins", kubelet_socket=True, sockets={"nvidia-gpu.sock": True})

ASKED_AS = ("gpu-node-7", "/etc/kubernetes/kubelet.conf")  # a node need not have its host's name


def node(
    version: str,
    files: Mapping[str, str],
    *,
    runs: bool = False,
    distribution: str = "kubeadm",
    gates: Mapping[str, bool] | None = None,
    settings: KubeletSettings | None = None,
    joined: bool = True,
    docker: bool = False,
) -> HostFacts:
    """A node with these files; its kubelet is down unless it `runs`."""
    told = settings or KubeletSettings(config=CONFIG)
    told = replace(told, gates={name: Gate(on, "--feature-gates") for name, on in (gates or {}).items()})
    units = {"kubelet.service": UP if runs else DOWN}
    if distribution in OWN_UNITS:
        units = {OWN_UNITS[distribution]: UP if runs else DOWN}
    facts = {path: file(path, text) for path, text in files.items()}
    before = host(L4)
    return replace(
        before,
        files={**before.files, **facts},
        services={**before.services, **units},
        runtimes=(DOCKER,) if docker else (),
        kubernetes=KubernetesFacts(
            True, "systemd", distribution, joined=joined, running=runs, version=version, settings=told,
            device_plugins=WELL if runs else None, node=NodeFacts({"Ready": "True KubeletReady"}) if runs else None,
            node_name=ASKED_AS[0], kubeconfig=ASKED_AS[1],
        ),
    )  # fmt: skip


def file(path: str, text: str) -> FileFacts:
    return FileFacts(path, text, sha256=hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest())
