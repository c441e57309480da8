"""User-data of `gpunode export cloud-init`, taken by each Debian's cloud-init, through the reboot that setup needs."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from gpunode.cli.app import main

from . import images
from .host import Host
from .lab import Lab
from .repositories import CUDA_HOST

SEED = "/var/lib/cloud/seed/nocloud"
AT = "/opt/gpunode.pyz"
STATE = "/var/lib/gpunode/cloud-init"
# What the lab's hosts have already: their address, name, host keys and package sources.
LEFT_ALONE = """datasource_list: [NoCloud]
network: {config: disabled}
preserve_hostname: true
manage_etc_hosts: false
ssh_deletekeys: false
ssh_genkeytypes: []
apt_preserve_sources_list: true
apt: {preserve_sources_list: true}
users: []
locale: false
"""
ENDED_S = 420.0
ASKED_S = 20


def seeded(lab: Lab, distribution: str, user_data: str) -> Host:
    if not (images.CLOUD[distribution] / ".done").exists():
        raise RuntimeError(f"no image with cloud-init; run {images.BUILD} {images.suite(distribution)}")
    host = lab.host(distribution, gpu="h100", runtime="docker", above=(images.CLOUD[distribution],), start=False)
    host.fault("nouveau")
    host.write("/etc/cloud/cloud.cfg.d/99-lab.cfg", LEFT_ALONE)
    host.write(f"{SEED}/meta-data", f"instance-id: {host.name}\n")
    host.write(f"{SEED}/user-data", user_data)
    return host


def exported(directory: Path, *words: str) -> Path:
    assert main(["export", "cloud-init", *words, "--output", str(directory)]) == 0
    return directory


def asked(host: Host, command: str) -> str:
    """What it prints; "" while the host goes down or comes up, which it does by itself here."""
    try:
        return host.nsrun(command, timeout=ASKED_S).stdout
    except (RuntimeError, subprocess.TimeoutExpired):
        return ""


def until_ended(host: Host, boots: int) -> str:
    """The words of `cloud-init status` on boot number `boots`, once it is at its end.

    What it says on a boot before that is not the end: a reboot stops cloud-init in the middle of its last stage, and a
    25.1 that is asked just then says "error" of its own unit.
    """
    end, said = time.monotonic() + ENDED_S, ""
    while time.monotonic() < end:
        said = asked(host, "cloud-init status --long 2>&1")
        if host.boots >= boots and ("status: error" in said or "status: done" in said):
            return said
        time.sleep(0.5)
    log = host.nsrun("tail -n 40 /var/log/cloud-init-output.log; systemctl list-jobs").stdout
    raise AssertionError(f"cloud-init did not end within {ENDED_S:.0f} s, boot {host.boots}\n{said}\n{log}")


@pytest.mark.parametrize(
    ("distribution", "by"), [("debian12", "path"), ("debian13", "url"), ("debian-sid", "path")], ids=lambda v: v
)
def test_a_first_boot_ends_with_a_node_that_was_rebooted_once(
    lab: Lab, tmp_path: Path, distribution: str, by: str
) -> None:
    # Python 3.13 takes no authority like the lab's, without key usage (VERIFY_X509_STRICT); the hash decides anyway.
    url = f"http://{CUDA_HOST}/gpunode.pyz"
    source = ("--gpunode-path", AT) if by == "path" else ("--gpunode-url", url)
    words = ("--driver", "595", "--flavour", "open", "--trust-key", lab.repo_fingerprint)
    export = exported(tmp_path / "export", *words, *source)
    host = seeded(lab, distribution, (export / "user-data").read_text())
    if by == "path":
        host.write(AT, (export / "gpunode.pyz").read_bytes())
    else:
        (lab.web.root / CUDA_HOST / "gpunode.pyz").write_bytes((export / "gpunode.pyz").read_bytes())
    host.start(wait=False)  # it reboots in its first boot, as soon as it likes

    said = until_ended(host, 2)

    output = host.read("/var/log/cloud-init-output.log")
    assert "status: done" in said, said + output
    assert host.boots == 2, output
    assert host.nsrun(f"cloud-init schema --config-file {SEED}/user-data").returncode == 0
    assert "nvidia" in host.read("/etc/docker/daemon.json")
    assert host.nsrun("systemctl list-unit-files --no-legend 'gpunode*'").stdout == ""
    assert [path.name for path in host.path("/var/lib/cloud/instance/sem").glob("gpunode.*")] != [], output
    host.reboot()
    assert "status: done" in until_ended(host, 3)
    assert host.read("/var/log/cloud-init-output.log").count("this host matches the spec") == output.count(
        "this host matches the spec"
    ), "a setup ran again"


def test_what_fails_is_cloud_inits_own_result_and_a_foreign_gpunode_never_runs(lab: Lab, tmp_path: Path) -> None:
    """The file at the path is not the one of the export."""
    export = exported(tmp_path / "export", "--driver", "595", "--gpunode-path", AT)
    host = seeded(lab, "debian12", (export / "user-data").read_text())
    host.write(AT, "#!/bin/sh\ntouch /pwned\n", 0o755)
    host.start(wait=False)  # it reboots in its first boot, as soon as it likes

    said = until_ended(host, 1)

    output = host.read("/var/log/cloud-init-output.log")
    assert "status: error" in said, said + output
    assert "scripts_per_boot" in said or "scripts-per-boot" in said, said
    assert "nothing was run" in output
    assert not host.exists("/pwned")
    assert host.nsrun(f"ls -A {STATE}").stdout.split() == ["spec.yaml"]
    errors = json.loads(host.nsrun("cat /run/cloud-init/result.json").stdout)["v1"]["errors"]
    assert errors != []
