"""`gpunode export packer-shell` on a machine without a GPU that becomes an image, and the first boot of it with one.

Packer itself runs where it is installed; else what its provisioners do is done over SSH as they do it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gpunode.cli.app import main

from . import hardware
from .host import Host
from .lab import Lab
from .product_runs import expect

KEPT = "/var/lib/gpunode/image"


def exported(directory: Path, lab: Lab) -> Path:
    words = ("--driver", "595", "--flavour", "open", "--trust-key", lab.repo_fingerprint)
    assert main(["export", "packer-shell", *words, "--output", str(directory)]) == 0
    return directory


def upload(host: Host, path: str, data: bytes) -> None:
    """To the running host's /tmp, which may be a mount of its own."""
    host.write("/root/uploaded", data)
    host.run(f"mv /root/uploaded {path}", user="root")


def first_boot_with_a_gpu(host: Host) -> None:
    host.stop()
    hardware.plug(host, "h100")
    host.start()
    expect(host.run(f"/usr/bin/python3 -I {KEPT}/gpunode-*.pyz check", user="root"), 0)
    assert "H100" in expect(host.run("nvidia-smi -L", user="root"), 0).stdout


def test_a_machine_without_a_gpu_becomes_an_image_that_boots_with_one(lab: Lab, tmp_path: Path) -> None:
    host = lab.host("debian12", gpu="none", runtime="docker")
    assert host.run("python3 -c 'import typer'", user="root").returncode != 0, "the host has our packages"
    export = exported(tmp_path / "gpunode", lab)
    upload(host, "/tmp/gpunode-spec.yaml", (export / "spec.yaml").read_bytes())
    upload(host, "/tmp/script_1.sh", (export / "provision.sh").read_bytes())
    upload(host, "/tmp/gpunode.pyz", b"#!/bin/sh\ntouch /pwned\n")
    other = host.run("sh /tmp/script_1.sh", user="root")
    assert other.returncode == 1
    assert "nothing was run" in other.stderr
    assert not host.exists("/pwned")

    upload(host, "/tmp/gpunode.pyz", (export / "gpunode.pyz").read_bytes())
    expect(host.run("sh /tmp/script_1.sh", user="root"), 0)

    assert host.nsrun("ls /tmp/gpunode*").stdout == ""
    first_boot_with_a_gpu(host)


def test_packer_itself_runs_the_provisioners(lab: Lab, tmp_path: Path) -> None:
    packer = shutil.which("packer")
    if packer is None:
        pytest.skip("packer is not installed: its provisioners are not run by Packer here")
    host = lab.host("debian13", gpu="none", runtime="docker")
    export = exported(tmp_path / "gpunode", lab)
    (tmp_path / "image.pkr.hcl").write_text(
        f"""source "null" "machine" {{
  ssh_host             = "{host.addr}"
  ssh_username         = "root"
  ssh_private_key_file = "{host.key}"
}}
build {{
  sources = ["source.null.machine"]
{(export / "gpunode.hcl").read_text()}
}}
"""
    )
    env = {**os.environ, "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1", "PACKER_CACHE_DIR": str(tmp_path / "cache")}
    built = subprocess.run(
        (packer, "build", "-color=false", "."),
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert host.nsrun(f"ls {KEPT}").stdout.split()[-1] == "spec.yaml", built.stdout
    first_boot_with_a_gpu(host)
