"""The probe in every shell it promises to run under, against a fake root."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.recordings import masked
from gpunode.model.facts import HostFacts
from tests.facts.hosts import make_root, run_probe, snapshot

SHELLS = [("dash",), ("bash",), ("bash", "--posix"), ("busybox", "ash")]
# Prints before it hangs, ignores TERM, and ends by itself some time after the test.
HANGS_S = 60
HANGS = f"#!/bin/sh\ntrap '' TERM\necho half an answer\ni=0; while [ $i -lt {HANGS_S} ]; do sleep 1; i=$((i+1)); done\n"


@pytest.fixture(params=SHELLS, ids=lambda shell: " ".join(shell))
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


def test_every_shell_sees_the_same_host_and_changes_nothing(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    before = snapshot(root)
    done = run_probe(shell, root)
    assert done.returncode == 0
    assert done.stderr == b""
    assert snapshot(root) == before
    _is_the_fake_host(assemble(done.stdout, "gpu07"))


def _is_the_fake_host(host: HostFacts) -> None:
    assert (host.hostname, host.os.id, host.os.version_id, host.init) == ("gpu07", "ubuntu", "24.04", "systemd")
    gpu = host.gpus[0]
    assert (gpu.address, gpu.device, gpu.driver, gpu.subsystem) == ("0000:41:00.0", "2330", "nvidia", "10de:16c1")
    assert (gpu.link_speed, gpu.config_head, len(host.pci)) == ("32.0 GT/s PCIe", "7f103023", 1)
    assert (host.driver.loaded, host.driver.loaded_flavour, host.driver.gpus) == ("610.57.04", "open", (gpu.address,))
    assert host.driver.smi is not None
    assert (host.driver.smi.cuda_version, host.driver.smi.gpus[0].memory_total_bytes) == ("13.3", 81559 << 20)
    tree = host.kernel.trees[0]
    assert (tree.bootable, tree.headers, tree.nvidia_module) == (
        True,
        True,
        "/lib/modules/6.8.0-52-generic/updates/dkms/nvidia.ko.zst",
    )
    assert host.kernel.next_boot == "6.8.0-52-generic"
    assert host.kernel.blacklisted == {"nouveau", "nova_core"}
    assert (host.packages.manager, host.packages.held) == ("apt", frozenset({"nvidia-open"}))
    assert set(host.packages.installed) == {"docker.io", "nvidia-open"}
    assert host.uvm_major == 511
    docker, containerd = host.runtimes
    assert (docker.name, docker.config_path, docker.flags) == ("docker", "/etc/docker/daemon.json", ("-H", "fd://"))
    assert (containerd.config_path, containerd.unit, containerd.version) == (
        "/etc/containerd/main.toml",
        "containerd.service",
        "1.7.24",
    )
    assert containerd.imports == ("/etc/containerd/conf.d/10-auth.toml",)
    assert containerd.cri_error == 'no runtime "x"'
    assert host.file("/etc/docker/daemon.json").text is not None
    assert host.file("/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env").text == "# shipped\n"
    assert not host.file("/etc/containerd/config.toml").exists


# containerd 2.1.9 with disabled_plugins = ["cri"], by `ctr plugins ls -d id==cri type==io.containerd.cri.v1`.
WITHOUT_CRI = """Type:          io.containerd.cri.v1
ID:            runtime
Requires:     
               io.containerd.warning.v1

Type:          io.containerd.cri.v1
ID:            images
Requires:     
               io.containerd.lease.v1
"""  # noqa: W291  # as it is printed


def test_cri_of_containerd_2_is_off_though_the_plugins_it_is_made_of_are_loaded(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"ctr": f"#!/bin/sh\ncat <<'END'\n{WITHOUT_CRI}END\n"})
    containerd = assemble(run_probe(("sh",), root).stdout, "gpu07").runtimes[1]
    assert containerd.cri_error == "the CRI plugin is switched off"
    assert containerd.effective_default is None


def test_a_program_that_containerds_files_name_and_that_is_not_there_is_seen(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    gone = "/usr/local/nvidia/toolkit/nvidia-container-runtime"
    file = root / "etc/containerd/conf.d/50-gpu.toml"
    file.write_text(f'[plugins."cri".containerd.runtimes.nvidia.options]\nBinaryName = "{gone}"\n')
    host = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert host.runtimes[1].missing_binaries == (gone,)


def test_an_imported_file_with_a_leading_dot_is_seen(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/containerd/conf.d/.site.toml").write_text("version = 2\n")
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert set(host.runtimes[1].imports) == {"/etc/containerd/conf.d/10-auth.toml", "/etc/containerd/conf.d/.site.toml"}
    assert host.file("/etc/containerd/conf.d/.site.toml").text == "version = 2\n"


def test_an_nvidia_smi_that_ignores_term_costs_only_its_limit(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-smi": HANGS})
    begun = time.monotonic()
    done = run_probe(shell, root, GPUNODE_SMI_LIMIT_S="1")
    assert time.monotonic() - begun < HANGS_S / 2
    host = assemble(done.stdout, "gpu07")
    assert host.driver.smi is not None
    assert (host.driver.smi.code, host.driver.smi.message) == (124, "half an answer")
    assert host.driver.loaded == "610.57.04"
    assert "smi" in host.unread


def test_a_link_that_leads_nowhere_is_not_an_absent_file(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/docker/daemon.json").unlink()
    (root / "etc/docker/daemon.json").symlink_to("../site/daemon.json")
    file = assemble(run_probe(shell, root).stdout, "gpu07").file("/etc/docker/daemon.json")
    assert file.exists
    assert file.unread == "it is a symbolic link to ../site/daemon.json, which is missing"


def test_nvidia_smi_is_not_run_while_the_module_is_not_loaded(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-smi": f"#!/bin/sh\ntouch {tmp_path}/was-run\n"})
    shutil.rmtree(root / "sys/module/nvidia")
    host = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert host.driver.smi is None
    assert host.unread["smi"] == "the nvidia module is not loaded"
    assert not (tmp_path / "was-run").exists()


def test_a_recording_of_it_holds_no_secret_and_reads_the_same(tmp_path: Path) -> None:
    stream = run_probe(("sh",), make_root(tmp_path)).stdout
    assert b"hunter2" in stream
    recording = masked(stream, mask_host=True)
    for secret in (b"hunter2", b"gpu07", b"1654922003456", b"5f1c2a90"):
        assert secret not in recording
    host = assemble(recording, "recorded")
    assert host.driver.loaded == "610.57.04"
    assert host.runtimes[1].imports == ("/etc/containerd/conf.d/10-auth.toml",)
    assert masked(recording, mask_host=True) == recording


def test_a_kernel_of_arch_is_on_the_list_with_its_headers(shell: tuple[str, ...], tmp_path: Path) -> None:
    listed = "linux 6.18-1\nlinux-lts-headers 6.12-1\nlinux-firmware 2026-1\nlinux-api-headers 6.18-1\n"
    root = make_root(tmp_path, {"pacman": f"#!/bin/sh\nprintf '{listed}'\n"})
    (root / "usr/bin/dpkg-query").unlink()
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert host.packages.manager == "pacman"
    assert set(host.packages.installed) == {"linux", "linux-lts-headers"}
