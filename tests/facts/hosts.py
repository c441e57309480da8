"""A fake root for the probe: directories, files and tools as a GPU host has them, small enough to read."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gpunode.facts.probe_script import probe_script

SMI_XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>610.57.04</driver_version>
  <cuda_version>13.3 [Deprecated; Use CUDA UMD Version instead]</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:41:00.0">
    <product_name>NVIDIA H100 80GB HBM3</product_name>
    <persistence_mode>Enabled</persistence_mode>
    <mig_mode><current_mig>Disabled</current_mig></mig_mode>
    <serial>1654922003456</serial>
    <uuid>GPU-5f1c2a90-7d11-4c3e-9a7e-0123456789ab</uuid>
    <fb_memory_usage><total>81559 MiB</total></fb_memory_usage>
    <ecc_mode><current_ecc>N/A</current_ecc></ecc_mode>
    <fabric><state>Completed</state><status>Success</status></fabric>
  </gpu>
</nvidia_smi_log>
"""

ROOTS = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
NAMESPACES = ("pid", "mnt", "user")

FILES = {
    "proc/sys/kernel/osrelease": "6.8.0-52-generic\n",
    "proc/sys/kernel/hostname": "gpu07\n",
    "proc/sys/kernel/random/boot_id": "763bc20e-1e78-4731-b993-2f6418be2d8e\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.8.0-52-generic ro modprobe.blacklist=nouveau\n",
    "proc/devices": "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.57.04  Release Build\n",
    "proc/driver/nvidia/params": 'EnableGpuFirmware: 18\nRegistryDwords: ""\n',
    "proc/driver/nvidia/gpus/0000:41:00.0/information": "Model: NVIDIA H100\n",
    "proc/812/comm": "containerd\n",
    "proc/812/status": "Name:\tcontainerd\nPPid:\t1\n" + ROOTS,
    "proc/812/cgroup": "0::/system.slice/containerd.service\n",
    "proc/812/cmdline": "/usr/bin/containerd\0--config\0/etc/containerd/main.toml\0",
    "proc/900/comm": "dockerd\n",
    "proc/900/status": "Name:\tdockerd\nPPid:\t1\n" + ROOTS,
    "proc/900/cmdline": "/usr/bin/dockerd\0-H\0fd://\0",
    "proc/950/comm": "containerd\n",
    "proc/950/status": "Name:\tcontainerd\nPPid:\t900\n" + ROOTS,
    "proc/950/cmdline": "containerd\0--config\0/var/run/docker/containerd/containerd.toml\0",
    "sys/module/nvidia/version": "610.57.04\n",
    "sys/module/nvidia/initstate": "live\n",
    "sys/module/nvidia/refcnt": "131\n",
    "sys/bus/pci/devices/0000:41:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:41:00.0/class": "0x030200\n",
    "sys/bus/pci/devices/0000:41:00.0/device": "0x2330\n",
    "sys/bus/pci/devices/0000:41:00.0/subsystem_vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:41:00.0/subsystem_device": "0x16c1\n",
    "sys/bus/pci/devices/0000:41:00.0/current_link_speed": "32.0 GT/s PCIe\n",
    "sys/bus/pci/devices/0000:41:00.0/config": "\x7f\x10\x30\x23",
    "sys/bus/pci/devices/0000:00:1f.0/vendor": "0x8086\n",
    "sys/bus/pci/devices/0000:00:1f.0/class": "0x060100\n",
    "etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\nID_LIKE=debian\nVERSION_CODENAME=noble\n',
    "etc/modprobe.d/nova.conf": "install nova_core /bin/false\n",
    "etc/docker/daemon.json": '{"proxies": {"http-proxy": "http://me:hunter2@proxy:3128"}}',
    "etc/nvidia-container-toolkit/nvidia-cdi-refresh.env": "# shipped\n",
    "etc/containerd/main.toml": 'version = 2\nimports = [\n  "/etc/containerd/conf.d/*.toml",\n]\n',
    "etc/containerd/conf.d/10-auth.toml": '[plugins."cri".registry.configs."r.example".auth]\n  password = "hunter2"\n',
    "lib/modules/6.8.0-52-generic/updates/dkms/nvidia.ko.zst": "",
    "lib/modules/6.8.0-52-generic/build/Makefile": "",
    "boot/vmlinuz-6.8.0-52-generic": "",
    "run/systemd/system/keep": "",
}
TOOLS = {
    "nvidia-smi": f"#!/bin/sh\ncat <<'END'\n{SMI_XML}END\n",
    "apt-get": "#!/bin/sh\nexit 100\n",
    "dpkg-query": "#!/bin/sh\nprintf 'docker.io\\t26.1.5\\tamd64\\tii \\nnvidia-open\\t610.57.04-1\\tamd64\\thi \\n"
    "bash\\t5.2\\tamd64\\tii \\n'\n",
    "containerd": "#!/bin/sh\necho 'containerd github.com/containerd/containerd 1.7.24 x'\n",
    "ctr": "#!/bin/sh\nprintf 'Type: io.containerd.grpc.v1\\nID:   cri\\nError:\\n  Message:   no runtime \"x\"\\n'\n",
}


def make_root(root: Path, tools: dict[str, str] | None = None) -> Path:
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="latin-1")
    for name, text in {**TOOLS, **(tools or {})}.items():
        path = root / "usr/bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    for pid in ("1", "812", "900", "950"):
        in_namespaces(root, pid)
    (root / "proc/812/exe").symlink_to("/usr/bin/containerd")
    (root / "proc/900/exe").symlink_to("/usr/bin/dockerd")
    (root / "proc/950/exe").symlink_to("/usr/bin/containerd")
    (root / "sys/bus/pci/devices/0000:41:00.0/driver").symlink_to("/sys/bus/pci/drivers/nvidia")
    return root


def in_namespaces(root: Path, process: str, **other: str) -> None:
    """Process `process` is where process 1 is; `other` has another number for a kind of namespace: pid="5"."""
    directory = root / "proc" / process / "ns"
    directory.mkdir(parents=True, exist_ok=True)
    for kind in NAMESPACES:
        inode = root / "namespaces" / f"{kind}-{other.get(kind, 'home')}"
        inode.parent.mkdir(exist_ok=True)
        inode.touch()
        (directory / kind).symlink_to(inode)


def run_probe(shell: Sequence[str], root: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    """The probe as a transport would send it: on stdin, to a shell that knows nothing else."""
    return subprocess.run(
        [*shell, "-s"],
        input=probe_script().encode(),
        capture_output=True,
        timeout=300,
        env={**os.environ, "GPUNODE_ROOT": str(root), **env},
        check=False,
    )


def snapshot(root: Path) -> dict[str, tuple[int, int, str]]:
    """path -> mode, mtime and content hash of everything below `root`."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
        digest = hashlib.sha256(content.encode()).hexdigest()
        found[str(path)] = (status.st_mode, status.st_mtime_ns, digest)
    return found
