"""The next boot: a kernel without a module is found before the reboot; a person enrols Secure Boot's key."""

from __future__ import annotations

from pathlib import Path

from .host import Host
from .lab import Lab
from .product_runs import Controller, expect

NEXT = "6.99.0-1-lab"


def add_kernel(host: Host, *, headers: bool) -> None:
    """A newer kernel than the running one, as an unattended upgrade leaves it: GRUB starts it next."""
    host.nsrun(f"mkdir -p /boot /lib/modules/{NEXT} && : >/boot/vmlinuz-{NEXT}")
    if headers:
        source = f"/usr/src/linux-headers-{NEXT}"
        host.nsrun(f"mkdir -p {source} && : >{source}/Makefile && ln -s {source} /lib/modules/{NEXT}/build")


def test_no_reboot_into_a_kernel_without_a_module_until_setup_has_built_it(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="h100", runtime="docker", start=False)
    host.fault("nouveau")
    host.start()
    add_kernel(host, headers=True)
    host.fault("dkms_fail_next")
    me = Controller("ssh", tmp_path)
    words = ("setup", "--yes", "--reboot", "if-needed", "--trust-key", lab.repo_fingerprint)
    boots = host.boots

    said = expect(me.gpunode(host, *words), 1).stdout

    assert host.boots == boots
    assert f"{NEXT} still has no nvidia module" in said
    assert "pci_resize_resource" in said, "the compiler's own words"

    host.fault("dkms_fail_next", False)
    expect(me.gpunode(host, *words), 0)
    assert host.boots == boots + 1
    assert host.exists(f"/lib/modules/{NEXT}/updates/dkms/nvidia.ko")
    expect(me.gpunode(host, "check"), 0)


def test_secure_boot_queues_the_key_and_goes_on_once_a_person_enrolled_it(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian13", gpu="h100", runtime="containerd", start=False)
    host.fault("secure_boot")
    host.start()
    me = Controller("ssh", tmp_path)
    words = ("setup", "--yes", "--reboot", "if-needed", "--trust-key", lab.repo_fingerprint)
    boots = host.boots

    said = expect(me.gpunode(host, *words), 6).stdout

    assert host.boots == boots, "a reboot that nobody attends would pass MokManager by"
    assert "Enroll MOK" in said
    password = host.nsrun("cat /run/gpunode/mok-password").stdout.strip()
    assert len(password) == 8
    assert host.nsrun("stat -c %a /run/gpunode/mok-password").stdout.strip() == "600"
    assert password not in said
    assert password not in host.read("/var/lib/gpunode/journal.jsonl")
    queued = host.nsrun("cat /run/lab/mok-new").stdout.split()
    assert queued[1] == password

    expect(me.gpunode(host, *words), 6)
    assert len(host.nsrun("cat /run/lab/mok-new").stdout.splitlines()) == 1, "it is queued once"

    enrol_at_the_console(host)
    expect(me.gpunode(host, *words), 0)
    expect(me.gpunode(host, "check"), 0)


def enrol_at_the_console(host: Host) -> None:
    host.nsrun("mv /run/lab/mok-new /run/lab/mok")
    host.reboot()


def test_another_branch_is_loaded_without_a_reboot_and_never_below_a_program(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian13", gpu="h100", runtime=None)
    me = Controller("ssh", tmp_path)
    words = ("setup", "--yes", "--trust-key", lab.repo_fingerprint)
    expect(me.gpunode(host, *words, "--driver", "580"), 0)
    assert loaded(host) == "580.178.04"
    boots = host.boots

    host.nsrun(": >/dev/nvidia-held")
    work = host.nsrun("sleep 300 3</dev/nvidia-held >/dev/null 2>&1 & echo $!").stdout.strip()
    refused = expect(me.gpunode(host, *words, "--driver", "595"), 4)
    assert f"{work} sleep" in refused.stdout + refused.stderr
    assert loaded(host) == "580.178.04"
    host.nsrun(f"kill {work}")

    expect(me.gpunode(host, *words, "--driver", "595"), 0)

    assert (loaded(host), host.boots) == ("595.91.07", boots)
    assert host.nsrun("systemctl is-active nvidia-persistenced").stdout.strip() == "active"
    expect(me.gpunode(host, "check"), 0)


def loaded(host: Host) -> str:
    return host.nsrun("cat /sys/module/nvidia/version").stdout.strip()
