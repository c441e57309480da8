"""k3s, k0s and microk8s as stand-ins around the real containerd 1.7: setup finds, changes, verifies and rolls back.

The stand-ins (stubs/files/kubernetes-distribution) write containerd's config as those distributions are documented to;
they are not those distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpunode import resources
from tests.engines import trees

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

STUB = (Path(__file__).parent / "stubs" / "files" / "kubernetes-distribution").read_text()
RUNTIME = (Path(__file__).parent / "stubs" / "files" / "nvidia-container-runtime").read_text()
PAIRS = {pair.name: pair for pair in trees.pairs(Path(__file__).parents[1] / "engines" / "microk8s")}
TEMPLATE = "/var/snap/microk8s/current/args/containerd-template.toml"
UNITS = {"k3s": "k3s.service", "k0s": "k0sworker.service", "microk8s": "snap.microk8s.daemon-containerd.service"}
SOCKETS = {
    "k3s": "/run/k3s/containerd/containerd.sock",
    "k0s": "/run/k0s/containerd.sock",
    "microk8s": "/var/snap/microk8s/common/run/containerd.sock",
}
WRITES = {
    "k3s": "/etc/rancher/k3s/config.yaml.d/99-gpunode.yaml",
    "k0s": "/etc/k0s/containerd.d/nvidia.toml",
    "microk8s": TEMPLATE,
}
UNIT = """[Service]
Type=notify
ExecStart=/usr/local/bin/{name} run
Restart=always
RestartSec=1
"""
# Comes up with any config until it names nvidia.
GUARD = """[Service]
ExecStartPre=/bin/sh -c '! grep -rqs nvidia {path} || {{ echo "{name}: refused by the test guard"; exit 1; }}'
"""


@pytest.fixture(scope="module")
def host(lab_session: Lab) -> Iterator[Host]:
    made = lab_session.host("debian13", gpu="none", runtime="containerd")
    made.nsrun("systemctl disable --now containerd", check=True)
    made.write("/usr/bin/nvidia-container-runtime", RUNTIME, 0o755)
    for name, unit in UNITS.items():
        made.write(f"/usr/local/bin/{name}", STUB, 0o755)
        made.write(f"/etc/systemd/system/{unit}", UNIT.format(name=name))
    made.nsrun("mkdir -p /var/snap/microk8s/8148/args && ln -s 8148 /var/snap/microk8s/current", check=True)
    made.write(TEMPLATE, PAIRS["template"].before[next(iter(PAIRS["template"].before))])
    made.write("/etc/rancher/k3s/config.yaml", "selinux: false\n")
    yield made
    lab_session.reset()


@pytest.fixture(params=sorted(UNITS))
def distribution(host: Host, request: pytest.FixtureRequest) -> Iterator[str]:
    """One of them at a time, running with runc."""
    name: str = request.param
    host.nsrun(f"systemctl daemon-reload && systemctl reset-failed && systemctl start {UNITS[name]}", check=True)
    assert default(host, name) == "runc"
    yield name
    host.nsrun(f"rm -rf /etc/systemd/system/{UNITS[name]}.d; systemctl stop {UNITS[name]}; systemctl daemon-reload")


def default(host: Host, name: str) -> str:
    script = resources.script("daemon/query") + f"\ngpunode_cri_status {SOCKETS[name]}\n"
    said = host.nsrun("sh -s", input=script, check=True).stdout
    return said.split('"defaultRuntimeName":"')[1].split('"')[0]


def test_one_that_refuses_is_put_back_and_one_that_does_not_is_changed_once(
    host: Host, distribution: str, tmp_path: Path
) -> None:
    control, command = Controller("ssh", tmp_path), ("setup", "--yes", "--only", "runtime", "--runtime", distribution)
    before = host.nsrun(f"sha256sum {WRITES[distribution]} 2>&1").stdout
    guard = f"/etc/systemd/system/{UNITS[distribution]}.d/guard.conf"
    host.write(guard, GUARD.format(path=WRITES[distribution], name=distribution))
    host.nsrun("systemctl daemon-reload", check=True)
    refused = expect(control.gpunode(host, *command), 1)
    assert "refused by the test guard" in refused.stdout + refused.stderr
    assert host.nsrun(f"sha256sum {WRITES[distribution]} 2>&1").stdout == before
    assert default(host, distribution) == "runc"

    host.nsrun(f"rm {guard}; systemctl daemon-reload", check=True)
    expect(control.gpunode(host, *command), 0)
    assert default(host, distribution) == "nvidia"
    after = host.read(WRITES[distribution])
    again = expect(control.gpunode(host, *command), 0)
    assert "no changes" in again.stdout
    assert host.read(WRITES[distribution]) == after

    expect(control.gpunode(host, "undo", "--yes"), 0)
    assert host.nsrun(f"sha256sum {WRITES[distribution]} 2>&1").stdout == before
    assert default(host, distribution) == "runc"
