"""`gpunode export nodewright`: its step sets a node up, run as the operator's agent runs it.

The agent itself is not here: what it does is its init container's copy, a chroot to the node's root in a privileged
container of the node's pid and network namespaces, and the step with SKYHOOK_DIR (NVIDIA/skyhook f9b9e8b,
operator/internal/controller/skyhook_controller.go and agent/skyhook-agent/src/skyhook_agent/chroot_exec.py).
"""

from __future__ import annotations

import json
from pathlib import Path

from gpunode.cli.app import main

from .host import Host, Result
from .lab import Lab
from .product_runs import expect

COPY = "/var/lib/skyhook/gpunode/gpunode-1"
# The container's own mount, uts and ipc namespaces, in which the node's root is mounted at /root.
AGENT = f"""
unshare --mount --uts --ipc sh -c '
  mount --make-rprivate / &&
  mount -t tmpfs tmpfs /mnt && mkdir /mnt/root && mount --rbind / /mnt/root &&
  cd {COPY} && SKYHOOK_DIR={COPY} STEP_ROOT={COPY}/skyhook_dir exec chroot /mnt/root "$@"' sh
"""


def run(host: Host, mode: str) -> Result:
    (step,) = json.loads(host.read(f"{COPY}/config.json"))["modes"][mode]
    words = " ".join((f"{COPY}/skyhook_dir/{step['path']}", *step["arguments"]))
    return host.nsrun(f"{AGENT.rstrip()} {words}")


def put(host: Host, export: Path) -> None:
    """As `cp -r /skyhook-package/*` does it, without modes: the agent makes the step executable."""
    package = export / "skyhook-package"
    for path in (one for one in package.rglob("*") if one.is_file()):
        host.write(f"{COPY}/{path.relative_to(package)}", path.read_bytes())
    host.nsrun(f"chmod +x {COPY}/skyhook_dir/gpunode.sh", check=True)


def test_the_agents_steps_set_a_node_up_and_check_it(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker")
    words = ("--driver", "595", "--flavour", "open", "--trust-key", lab.repo_fingerprint)
    assert main(["export", "nodewright", "--image", "gpunode", *words, "--output", str(tmp_path / "export")]) == 0
    put(host, tmp_path / "export")
    assert run(host, "apply-check").returncode == 1, "a node that is not set up passes"

    expect(run(host, "apply"), 0)
    expect(run(host, "apply-check"), 0)
    assert "nvidia" in host.read("/etc/docker/daemon.json")
    assert host.nsrun("nvidia-smi -L").returncode == 0
    assert host.nsrun("systemctl list-units --all --no-legend 'gpunode-*'").stdout == ""
    assert host.nsrun("stat -c %a /var/lib/gpunode/nodewright").stdout == "700\n"
    assert "no changes: this host matches the spec" in expect(run(host, "upgrade"), 0).stdout
