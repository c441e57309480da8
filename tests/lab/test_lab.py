"""The lab itself: that its hosts are real where it matters, and that nothing leaves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from .container_image import write_image
from .host import Host
from .images import SUITES, USERLAND_2026
from .lab import Lab
from .site import ROOT
from .web import Slow

# sid is served the repository of Debian 13, as gpunode treats it.
PLATFORM = {"debian12": "debian12", "debian13": "debian13", "debian-sid": "debian13"}
KEY_FILE = {"debian12": "3bf863cc.pub", "debian13": "8793F200.pub"}
INSTALL = "DEBIAN_FRONTEND=noninteractive apt-get install -y -qq"
OUTSIDE = "192.0.2.1"  # RFC 5737: belongs to nobody


def add_vendor_repository(host: Host) -> None:
    platform = PLATFORM[host.recipe.distribution]
    url = f"https://developer.download.nvidia.com/compute/cuda/repos/{platform}/x86_64/"
    keyring = "/usr/share/keyrings/vendor.asc"
    host.run(f"curl -fsS {url}{KEY_FILE[platform]} -o {keyring}", check=True)
    host.write("/etc/apt/sources.list.d/vendor.list", f"deb [signed-by={keyring}] {url} /\n")
    host.run("apt-get update -qq --error-on=any", check=True)


def install_driver(host: Host, *packages: str) -> None:
    """Headers in the same breath, and the module loaded."""
    add_vendor_repository(host)
    host.run(f"{INSTALL} {' '.join(packages)} linux-headers-$(uname -r) && modprobe nvidia", check=True)


def test_labs_side_by_side_share_no_keyring(lab: Lab) -> None:
    """gpg's locks do not hold between pid namespaces: of 450 exports from one keyring in three of them, 14 failed."""
    signers = (lab.trust.vendor, lab.trust.debian, lab.trust.stranger)
    assert all(signer.home.is_relative_to(lab.run_directory) for signer in signers)


@pytest.mark.parametrize("distribution", SUITES)
def test_a_host_boots_takes_a_driver_and_keeps_it_over_a_reboot(lab: Lab, distribution: str) -> None:
    host = lab.host(distribution, gpu="h100", runtime="docker")
    assert "[10de:2330]" in host.run("lspci -nn -d 10de:", check=True).stdout
    assert host.run("nvidia-smi").returncode == 127
    host.run("apt-get update -qq --error-on=any", check=True)

    install_driver(host, "nvidia-open")
    assert "NVIDIA H100 80GB HBM3" in host.run("nvidia-smi -L", check=True).stdout
    assert "libcuda.so.1" in host.run("ldconfig -p").stdout

    boot = host.boot_id()
    host.reboot()
    assert host.boot_id() != boot
    assert "595.91.07" in host.run("nvidia-smi --query-gpu=driver_version --format=csv", check=True).stdout
    assert "installed" in host.run("dkms status", check=True).stdout
    assert host.run("systemctl is-system-running --wait").stdout == "running\n"
    write_image(host.path("/root/image.tar"), "docker.io/library/lab:1")
    assert host.run("docker load -qi /root/image.tar && docker run --rm lab:1 echo up").stdout.endswith("up\n")


@pytest.mark.parametrize("distribution", USERLAND_2026)
def test_the_userland_of_2026_is_in_use(lab: Lab, distribution: str) -> None:
    host = lab.host(distribution)
    ask = "exec 2>&1; for tool in sudo dracut apt-get sqv; do $tool --version; done; readlink -f $(command -v ls)"
    said = host.run(ask).stdout
    for word in ("sudo-rs 0.2", "dracut", "apt 3.", "sqv 1.", "/usr/bin/coreutils"):
        assert word in said, said
    assert host.run("sudo -n id -u", user="admin", check=True).stdout == "0\n"


def test_the_containerd_host_has_no_docker(lab: Lab) -> None:
    host = lab.host("debian12", runtime="containerd")
    assert host.run("systemctl is-active containerd docker").stdout.split() == ["active", "inactive"]
    assert host.run("ctr version").returncode == 0


def test_nothing_leaves(lab: Lab) -> None:
    host = lab.host("debian12")
    for ask in (f"curl -sm 2 http://{OUTSIDE}/", "curl -sm 2 http://example.com/", f"ping -c1 -W1 {OUTSIDE}"):
        assert host.nsrun(ask).returncode != 0, ask
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection((OUTSIDE, 22), 5)


def test_who_may_become_root(lab: Lab) -> None:
    host = lab.host("debian12")
    assert host.run("sudo -n id -u", user="admin").stdout == "0\n"
    assert host.run("sudo -n id -u", user="operator").returncode != 0
    assert host.run("sudo -S -p '' id -u", user="operator", input="secret\n").stdout == "0\n"
    assert host.run("sudo -S -p '' id -u", user="nosudo", input="secret\n").returncode != 0


def test_a_branch_is_chosen_by_its_pinning_package(lab: Lab) -> None:
    host = lab.host("debian13", gpu="v100")
    add_vendor_repository(host)
    host.run(f"{INSTALL} nvidia-driver-pinning-580", check=True)  # before the driver, or apt has chosen already
    install_driver(host, "cuda-drivers")
    assert "580.178.04" in host.run("nvidia-smi --query-gpu=driver_version --format=csv", check=True).stdout
    host.run(f"apt-get purge -qq -y nvidia-driver-pinning-580 && {INSTALL} nvidia-driver-pinning-595.58.03", check=True)
    host.run(f"{INSTALL} cuda-drivers", check=True)
    assert host.run("modinfo -F version nvidia").stdout == "595.58.03\n"
    mismatch = host.run("nvidia-smi")
    assert (mismatch.returncode, "mismatch" in mismatch.stdout) == (18, True)


def test_the_fabric_completes_with_its_manager(lab: Lab) -> None:
    host = lab.host("debian12", gpu="hgx-h100")
    install_driver(host, "nvidia-open", "nvidia-fabricmanager")
    query = "nvidia-smi --query-gpu=fabric.state --format=csv,noheader"
    assert host.run(query).stdout.split("\n")[:8] == ["In Progress"] * 8
    host.run("systemctl enable --now nvidia-fabricmanager", check=True)
    host.reboot()
    host.run("systemctl is-system-running --wait")
    assert host.run(query).stdout.split("\n")[:8] == ["Completed"] * 8


def test_driver_faults_speak_as_the_kernel_does(lab: Lab) -> None:
    host = lab.host("debian12", gpu="l4")
    host.fault("dkms_fail")
    add_vendor_repository(host)
    failed = host.run(f"{INSTALL} nvidia-open linux-headers-amd64")
    assert failed.returncode == 100
    assert "Bad return status for module build" in failed.stdout + failed.stderr
    host.fault("dkms_fail", False)
    host.run("dpkg --configure -a", check=True)
    host.fault("key_rejected")
    assert "Key was rejected by service" in host.run("modprobe nvidia").stderr
    host.fault("key_rejected", False)
    host.fault("nouveau")
    host.reboot()
    assert "nouveau" in host.run("readlink /sys/bus/pci/devices/0000:3b:00.0/driver").stdout
    host.write("/etc/modprobe.d/blacklist-nouveau.conf", "blacklist nouveau\n")
    host.reboot()
    assert host.run("nvidia-smi -L").returncode == 0


def test_the_vendors_server_can_fail(lab: Lab) -> None:
    host = lab.host("debian12")
    url = "https://nvidia.github.io/libnvidia-container/gpgkey"
    curl = f"curl -fsS -m 3 {url}"
    assert "PUBLIC KEY" in host.nsrun(curl).stdout
    for fault, status in ((503, 22), ("reset", 35), ("truncate", 18), ("stall", 28), (Slow(100), 28)):
        lab.web.faults["gpgkey"] = fault  # type: ignore[assignment]
        got = host.nsrun(curl).returncode
        assert got == status or (fault == "reset" and got in (52, 56)), (fault, got)
    lab.web.faults.clear()
    lab.dns.mode = "servfail"
    assert host.nsrun(curl).returncode == 6


def test_a_power_cut_loses_what_was_not_synced(lab: Lab) -> None:
    host = lab.host("debian12", disk=800)
    host.nsrun("echo kept >/root/kept && sync && echo lost >/root/lost", check=True)
    host.power_cut()
    host.start()
    assert host.exists("/root/kept")
    assert not host.exists("/root/lost") or host.read("/root/lost") == ""


def test_a_snapshot_brings_the_disk_back(lab: Lab) -> None:
    host = lab.host("debian12")
    host.write("/root/state", "before")
    host.kill()
    host.snapshot("clean")
    host.start()
    host.write("/root/state", "after")
    host.stop()
    host.restore("clean")
    host.start()
    assert host.read("/root/state") == "before"


@pytest.mark.parametrize("distribution", SUITES)
def test_gpunode_runs_on_the_host(lab: Lab, gpunode_site: Path, distribution: str) -> None:
    host = lab.host(distribution)
    host.install_gpunode(ROOT, gpunode_site)
    host.run("gpunode --version", check=True)
