"""The probe in every shell it promises to run under, against a fake root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from gpunode.errors import TransportError
from gpunode.facts.collect import assemble
from gpunode.facts.probe_script import probe_script
from gpunode.facts.recordings import masked
from gpunode.model.facts import HostFacts
from gpunode.model.gpu_health import LinkErrors, NvLinks
from gpunode.model.kernel_log import AerCounters, KernelState, LoggedXid
from tests.facts.hosts import SMI_XML, make_root, run_probe, snapshot

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


def test_no_file_of_the_probe_takes_a_functions_name_from_another() -> None:
    """They are one script. `gpunode_tool` is there for that."""
    names = Counter(re.findall(r"^(\w+)\(\)", probe_script(), re.MULTILINE))
    assert [name for name, times in names.items() if times > 1] == ["gpunode_tool"]


def test_no_line_of_a_file_is_a_header(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    text = "@ smi rc=0\n@end\n|@ os rc=0\n@gpunode-facts 1\n@ file:/etc/forged absent\n@"
    (root / "etc/docker/daemon.json").write_text(text)
    (root / "proc/devices").write_text("195 nvidia\n@end\n@ smi rc=0 nvidia\n")
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert host.file("/etc/docker/daemon.json").text == text
    assert "/etc/forged" not in host.files


def test_passwords_in_the_addresses_of_archives_stay_on_the_host(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    lists = root / "etc/apt/sources.list.d"
    lists.mkdir(parents=True, exist_ok=True)
    (lists / "a.list").write_text(
        "deb https://ann:open-sesame@one.example/debian trixie main\n# deb https://x:open-sesame@no.example/\n"
    )
    (lists / "b.sources").write_text(
        "Types: deb\nURIs: http://ann:open-sesame@two.example/ https://b:open-sesame@three.example/\n"
    )
    told = run_probe(shell, root).stdout.decode()
    assert "open-sesame" not in told
    assert "|deb https://***@one.example/debian trixie main\n|\n|Types: deb\n" in told
    assert "|URIs: http://***@two.example/ https://***@three.example/\n" in told


def test_without_anything_random_the_probe_says_so_and_sends_nothing(shell: tuple[str, ...]) -> None:
    script = (
        probe_script()
        .replace("/proc/sys/kernel/random/uuid; MARK", "/nowhere; MARK")
        .replace("/dev/urandom 2", "/nowhere 2")
    )
    done = subprocess.run((*shell, "-s"), input=script.encode(), capture_output=True, check=False)
    with pytest.raises(TransportError) as refused:
        assemble(done.stdout, "gpu07")
    assert str(refused.value.evidence).startswith("nothing random to be had")


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


def test_what_nvidia_container_runtime_starts_in_its_turn_is_seen(tmp_path: Path) -> None:
    root = make_root(tmp_path, {"crun": "#!/bin/sh\n"})
    gone, file = "/usr/libexec/crio/crun", root / "etc/nvidia-container-runtime/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[nvidia-container-runtime]\nruntimes = ["{gone}", "crun"]\n')
    host = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert host.toolkit.low_level is not None
    assert [path.rpartition("/")[2] for path in host.toolkit.low_level] == ["crun"]
    assert host.runtimes[1].missing_binaries == (gone,)


def test_an_imported_file_with_a_leading_dot_is_seen(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/containerd/conf.d/.site.toml").write_text("version = 2\n")
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert set(host.runtimes[1].imports) == {"/etc/containerd/conf.d/10-auth.toml", "/etc/containerd/conf.d/.site.toml"}
    assert host.file("/etc/containerd/conf.d/.site.toml").text == "version = 2\n"


REFUSALS = (
    "[    7.1] Loading of module with unavailable key is rejected",
    "[    7.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
)


def test_a_module_that_secure_boot_refused_is_in_the_kernel_log_though_the_kernel_does_not_name_it(
    tmp_path: Path,
) -> None:
    many = 'i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo "[    8.$i] nouveau 0000:41:00.0: fault $i"; done\n'
    for line in REFUSALS:
        dmesg = f"#!/bin/sh\necho '{line}'\necho '[    7.2] usb 1-1: new device'\n{many}"
        root = make_root(tmp_path / str(REFUSALS.index(line)), {"dmesg": dmesg})
        log = assemble(run_probe(("sh",), root).stdout, "gpu07").driver.kernel_log
        assert (log[0], len(log), log[-1].split()[-1]) == (line, 201, "300"), "the newest 200, and the refusal"


XID79 = "[   70.1] NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."
KINDS = (
    REFUSALS[0],
    "[   71.1] mce: [Hardware Error]: Machine check events logged",
    "[   72.1] INFO: task nvidia-smi:77 blocked for more than 120 seconds.",
    "[   73.1] nvidia 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
    "[   74.1]  os_acquire_rwlock_write+0x35/0x50 [nvidia]",
    XID79,
    "[   75.1] nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
    "[   75.5] mlx5_core 0000:1a:00.0 ens1f0np0: Link down",
    "[   76.1] NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x26:0xffff:1482)",
)
FLOODS = {  # which of KINDS is of the same kind, and may go
    "NVRM: Xid (PCI:0000:41:00): 31, pid=1, name=x, Ch 1": "",
    "nvidia 0000:41:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer": "PCIe Bus Error",
    "mce: [Hardware Error]: Machine check events logged": "mce: ",
    "INFO: task x:1 blocked for more than 120 seconds.": "INFO: task ",
    "bnxt_en 0000:3b:00.1 ens2f1np1: NIC Link is Down": "mlx5_core",
    " nv_open+0x1/0x2 [nvidia]": "os_acquire",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_no_kind_of_line_pushes_another_out_of_the_kernel_log(flood: str, tmp_path: Path) -> None:
    many = f'i=0; while [ $i -lt 500 ]; do i=$((i + 1)); echo "[   99.$i] {flood}"; done\n'
    dmesg = "#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in ("usb 1-1: new device", *KINDS)) + many
    log = assemble(run_probe(("sh",), make_root(tmp_path, {"dmesg": dmesg})).stdout, "gpu07").driver.kernel_log
    assert [line for line in KINDS if line not in log and (FLOODS[flood] or "?") not in line] == []
    assert len(log) < 120
    assert not any("usb" in line for line in log)


# A program's name has at most 15 characters; the file's, in which it ended, has what a user likes.
FAULTS_OF_PROGRAMS = (
    "NVRM: Xid[77]: segfault at 0 ip 00007f sp 00007f error 4 in NVRM: Xid (PCI:0000:41:00): 13,[55d0+1000]",
    "NVRM: Xid (0): [77]: segfault at 0 ip 00007f sp 00007f error 4 in x): 13,[55d0+1000]",
    "traps: SXid[77] general protection fault ip:7f sp:7f error:0 in GPU has fallen off the bus[55d0+1000]",
    "ice 0:Link Down[77]: segfault at 0 ip 00007f sp 00007f error 4 in mlx5_core 0000:1a:00.0: Link down[55d0+1000]",
    "nvidia 0000:00:[77]: segfault at 0 ip 00007f sp 00007f error 4 in PCIe Bus Error: [55d0+1000]",
    "mce: [Hardware[77]: segfault at 0 ip 00007f sp 00007f error 4 in [Hardware Error][55d0+1000]",
    "INFO: task x:1 [77]: segfault at 0 ip 00007f sp 00007f error 4 in blocked for more than[55d0+1000]",
    "x[77]: segfault at 0 ip 00007f sp 00007f error 4 in f+0x1/0x2 [nvidia][55d0+1000]",
    "NVRM: GPU: x[77]: segfault at 0 ip 00007f sp 00007f error 4 in Loading of x is rejected[55d0+1000]",
    r"\xff\xff\xff\xff\xff\xff\xff[77]: segfault at 0 ip 00007f error 4 in NVRM: RmInitAdapter failed[55d0+1000]",
)
FORMATS = (
    ("dmesg", "[   99.1] "), ("dmesg", ""), ("dmesg", "[   99.1] [   T1234] "), ("dmesg", "[   99.1][   C3] "),
    ("journalctl", "[   99.1] gpu07 kernel: "),
)  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "stamp"),
    FORMATS,
    ids=["dmesg", "dmesg without times", "dmesg with callers", "a console with callers", "journalctl"],
)
def test_a_program_pushes_nothing_out_of_the_kernel_log_by_its_name(tool: str, stamp: str, tmp_path: Path) -> None:
    named = ("[   69.1] NVRM: Xid (PCI:0000:41:00): 94, pid=7, name=x[2]: y, Contained: SM (0x1). RST: No, D-RST: No",)
    kinds = [stamp + line.partition("] ")[2] for line in (*KINDS, *named)]
    many = [stamp + line for line in FAULTS_OF_PROGRAMS for _ in range(250)]
    (tmp_path / "log").write_text("\n".join((f"{stamp}usb 1-1: new device", *kinds, *many, "")))
    root = make_root(tmp_path / "root", {tool: f"#!/bin/sh\ncat {tmp_path}/log\n"})
    host = assemble(run_probe(("sh",), root).stdout, "gpu07")
    assert sorted(host.driver.kernel_log) == sorted(kinds)
    assert {xid.code for xid in host.log.xids} == {79, 94}


MILD = (
    "NVRM: Xid (PCI:0000:61:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 07 (0x1 0x2)",
    "NVRM: Xid (PCI:0000:61:00): 94, pid=7, name=x, Contained: SM (0x1). RST: No, D-RST: No",
    "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 19084, Non-fatal, Link 30 AN1 Heartbeat Timeout Error",
    "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 19084, Severity 0 Engine instance 30 Sub-engine instance 00",
    "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 19084, Data {0x00000001, 0x00000002}",
)
GRAVE = (
    "[   50.1] NVRM: Xid (PCI:0000:41:00): 95, pid=7, name=x, Uncontained: FBHUB. RST: Yes, D-RST: No",
    "[   51.1] NVRM: Xid (PCI:0000:41:00): 149, NETIR Fatal XC0 i0 Link -1 (0x1 0x2)",
    "[   52.1] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
)


@pytest.mark.parametrize("flood", MILD)
def test_a_burst_that_asks_for_nothing_pushes_out_no_fault(flood: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join((*GRAVE, *(f"[   99.{n}] {flood}" for n in range(300)), "")))
    root = make_root(tmp_path / "root", {"dmesg": f"#!/bin/sh\ncat {tmp_path}/log\n"})
    log = assemble(run_probe(("sh",), root).stdout, "gpu07").driver.kernel_log
    assert set(GRAVE) <= set(log)
    assert 0 < sum(flood in line for line in log) <= 100


XID95 = "NVRM: Xid (PCI:0000:41:00): 95, pid=7, name=x, Uncontained: FBHUB. RST: Yes, D-RST: No"
VETH = "[ 8630.1] eth0: renamed from veth1234"


@pytest.mark.parametrize(
    ("dmesg", "journal", "begins", "xids"),
    [
        (VETH, f"[    0.0] h kernel: Linux version\n[ 80.1] h kernel: {XID95}", None, 1),
        (VETH, f"[   70.1] h kernel: usb\n[ 80.1] h kernel: {XID95}", 70, 1),
        (VETH, "[ 9000.1] h kernel: usb", 8630, 0),
        (VETH, "", 8630, 0),
        (VETH, None, 8630, 0),
        ("[   59.9] usb", f"[ 80.1] h kernel: {XID95}", None, 0),
        ("usb", f"[ 80.1] h kernel: {XID95}", None, 0),
    ],
    ids=["the journal has all", "it has more", "it has less", "it is empty", "there is none", "all", "no times"],
)
def test_where_the_kernels_memory_is_full_the_journal_is_asked(
    dmesg: str, journal: str | None, begins: int | None, xids: int, tmp_path: Path
) -> None:
    tools = {"dmesg": f"#!/bin/sh\necho '{dmesg}'\n", "timeout": '#!/bin/sh\nshift\nexec "$@"\n'}
    if journal is not None:
        (tmp_path / "journal").write_text(f"{journal}\n" if journal else "")
        tools["journalctl"] = f"#!/bin/sh\ncat {tmp_path}/journal\n"
    host = assemble(run_probe(("sh",), make_root(tmp_path / "root", tools)).stdout, "gpu07")
    assert (host.log.begins_s, len(host.log.xids)) == (begins, xids)
    assert "kernel_log" not in host.unread


def test_an_empty_kernel_log_is_not_a_log_without_faults(tmp_path: Path) -> None:
    host = assemble(run_probe(("sh",), make_root(tmp_path, {"dmesg": "#!/bin/sh\n"})).stdout, "gpu07")
    assert host.unread["kernel_log"] == "it is empty: cleared, or kept from this container"


def test_events_and_counters_of_the_kernel_are_facts(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path, {"dmesg": f"#!/bin/sh\necho '{XID79}'\n"})
    device = root / "sys/bus/pci/drivers/nvidia/0000:41:00.0"
    counters = {"correctable": "RxErr 2\nTOTAL_ERR_COR 5", "nonfatal": "TOTAL_ERR_NONFATAL 0", "fatal": "Undefined 0"}
    for path, text in {
        **{device / f"aer_dev_{kind}": text for kind, text in counters.items()},
        root / "proc/uptime": "81233.10 5.0",
        root / "proc/sys/kernel/tainted": "12289",
        root / "sys/fs/pstore/dmesg-efi-171": "Panic#1",
        root / "sys/fs/pstore/console-ramoops-0": "of every boot",
        root / "sys/devices/system/edac/mc/mc0/ce_count": "4",
        root / "sys/devices/system/edac/mc/mc0/ue_count": "1",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert host.log.xids == (LoggedXid(79, "0000:41:00", 1, 70),)
    assert host.kernel_state == KernelState(
        81233, 12289, ("dmesg-efi-171",), {"0000:41:00.0": AerCounters(5, 0, None)}, 4, 1
    )


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


def test_a_file_comes_with_its_mode_and_the_time_it_was_written_at(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = root / "etc/docker/daemon.json"
    path.write_text("{}")
    path.chmod(0o640)
    os.utime(path, (1, 1_779_400_000))
    file = assemble(run_probe(shell, root).stdout, "gpu07").file("/etc/docker/daemon.json")
    assert (file.mode, file.written_at) == (0o640, 1_779_400_000)


def test_a_link_that_leads_nowhere_is_not_an_absent_file(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/docker/daemon.json").unlink()
    (root / "etc/docker/daemon.json").symlink_to("../site/daemon.json")
    file = assemble(run_probe(shell, root).stdout, "gpu07").file("/etc/docker/daemon.json")
    assert file.exists
    assert file.unread == "it is a symbolic link to ../site/daemon.json, which is missing"


def test_debians_rpm_makes_its_database_nowhere_that_stays(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Its %_dbpath is ~/.rpmdb; it made one for every user who ran `gpunode detect`, and for root."""
    asks = f'echo "$HOME" >{tmp_path}/asked; mkdir -p "$HOME/.rpmdb"'
    root = make_root(tmp_path / "root", {"rpm": f"#!/bin/sh\n{asks}\n"})
    home = tmp_path / "home"
    home.mkdir()
    assert run_probe(shell, root, HOME=str(home)).returncode == 0
    assert list(home.iterdir()) == []
    assert not Path((tmp_path / "asked").read_text().strip()).exists()


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


def test_an_elastic_fabric_adapter_is_seen_and_no_other_network_of_amazons(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    root = make_root(tmp_path)
    for place, device in (("0000:00:05.0", "0xec20"), ("0000:9c:00.0", "0xefa2")):
        (root / "sys/bus/pci/devices" / place).mkdir()
        for name, text in (("vendor", "0x1d0f"), ("class", "0x020000"), ("device", device)):
            (root / "sys/bus/pci/devices" / place / name).write_text(f"{text}\n")
    host = assemble(run_probe(shell, root).stdout, "gpu07")
    assert [(d.address, d.device, d.driver) for d in host.pci if d.vendor == "1d0f"] == [("0000:9c:00.0", "efa2", None)]


LINKS = """#!/bin/sh
gpu() { echo "GPU $1: NVIDIA H100 80GB HBM3 (UUID: GPU-5f1c2a90-7d11-4c3e-9a7e-0123456789a$2)"; }
case "$*" in
  "nvlink -s")
    gpu 0 b; printf '\\t Link 0: 26.562 GB/s\\n\\t Link 1: <inactive>\\n'
    gpu 1 c; echo 'NVML: Unable to retrieve NVLink information as all links are inActive' ;;
  "topo -p2p r")
    printf ' \\033[4m\\tGPU0\\tGPU1\\t\\033[0m\\n GPU0\\tX\\tOK\\t\\n GPU1\\tCNS\\tX\\t\\n'
    printf '\\nLegend:\\n\\n  X    = Self\\n' ;;
  "nvlink -e") gpu 0 b; printf '\\t Link 0: Replay Errors: 7\\n\\t Link 0: CRC Errors: 0\\n\\t Link 1: Odd: 9\\n' ;;
  *) cat "${0%/bin/*}/answer.xml" ;;
esac
"""


@pytest.mark.parametrize("gpus", [1, 2])
def test_links_of_several_gpus_are_asked_for(shell: tuple[str, ...], gpus: int, tmp_path: Path) -> None:
    root = make_root(tmp_path, {"nvidia-smi": LINKS})
    start, end = SMI_XML.index("  <gpu id="), SMI_XML.index("</nvidia_smi_log>")
    one = SMI_XML[start:end]
    two = one.replace("00000000:41", "00000000:61").replace("789ab", "789ac")
    (root / "usr/answer.xml").write_text(SMI_XML[:start] + one + two * (gpus - 1) + SMI_XML[end:])
    smi = assemble(run_probe(shell, root).stdout, "gpu07").driver.smi
    assert smi is not None
    errors = LinkErrors(0, "Replay", 7), LinkErrors(0, "CRC", 0)
    assert [gpu.links for gpu in smi.gpus] == ([NvLinks(1, (1,), errors), NvLinks(0)] if gpus == 2 else [None])
    assert [gpu.peers for gpu in smi.gpus] == ([("X", "OK"), ("CNS", "X")] if gpus == 2 else [()])


def test_only_libraries_of_64_bits_count(tmp_path: Path) -> None:
    said = """1 libs found in cache
\\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1
\\tlibcuda.so.1 (libc6,x86-64, OS ABI: Linux 2.3.99) => /usr/lib/x86_64-linux-gnu/libcuda.so.1
\\tlibnvidia-ml.so.1 (libc6) => /usr/lib/i386-linux-gnu/libnvidia-ml.so.1
\\tlibnvidia-ml.so.1 (libc6,AArch64) => /usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1
\\tlibnvidia-ml.so.1x (libc6,AArch64) => /usr/lib/x
"""
    root = make_root(tmp_path, {"ldconfig": f'#!/bin/sh\nprintf "{said}"\n'})
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").driver.libraries == {
        "libcuda.so.1": ("/usr/lib/x86_64-linux-gnu/libcuda.so.1",),
        "libnvidia-ml.so.1": ("/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",),
    }
