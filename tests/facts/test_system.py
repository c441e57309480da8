"""The machine at large, as the probe's shells read it and as the parser takes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpunode.facts.collect import assemble
from gpunode.facts.kubernetes import parse_kubernetes
from gpunode.facts.system import parse_system
from gpunode.facts.wire import decode
from gpunode.model.system import (
    UNLIMITED,
    CudaToolkit,
    FileSystem,
    NamedProxy,
    Outbound,
    RdmaModule,
    RdmaPort,
    SetVariable,
    SystemFacts,
)
from tests.facts.hosts import make_root, run_probe

# As CUDA 12.4's packages have it, shortened.
VERSION_JSON = """{
   "cuda" : {
      "name" : "CUDA SDK",
      "version" : "12.4.1"
   },
   "cuda_cccl" : {
      "name" : "CUDA C++ Core Compute Libraries",
      "version" : "12.4.127"
   },
   "cuda_nvcc" : {
      "name" : "CUDA NVCC",
      "version" : "12.4.131"
   }
}
"""
PORT = "sys/class/infiniband/mlx5_0"
FILES = {
    "proc/uptime": "90210.52 1234.00\n",
    "proc/meminfo": "MemTotal:       1056444716 kB\nMemFree:   5 kB\nMemAvailable:   900000000 kB\nBuffers: 1 kB\n",
    "proc/swaps": "Filename\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/nvme0n1p3 partition\t8388604\t\t0\t-2\n",
    "proc/loadavg": "0.10 0.05 0.01 2/812 12345\n",
    "proc/locks": "1: POSIX  ADVISORY  WRITE 243 08:01:{inode} 0 EOF\n",
    "proc/243/comm": "unattended-upgr\n",
    "proc/243/stat": "243 (unattended ) 9 upgr) S 1 243 243 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8011000 5 6 7\n",
    "proc/mounts": "/dev/sda1 / ext4 rw,relatime 0 0\n/dev/sda2 /var ext4 ro,relatime 0 0\n"
    "/dev/sda3 /variety ext4 rw 0 0\n",
    "proc/sys/fs/file-nr": "1836\t0\t9223372036854775807\n",
    "proc/sys/kernel/pid_max": "4194304\n",
    "proc/sys/kernel/threads-max": "192730\n",
    "proc/812/limits": "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max open files            1048576              1048576              files     \n"
    "Max locked memory         8388608              unlimited            bytes     \n",
    "proc/900/limits": "Max locked memory         unlimited            unlimited            bytes     \n",
    "run/systemd/timesync/synchronized": "",
    "boot/initrd.img-6.8.0-52-generic": "070701",
    "sys/bus/pci/devices/0000:41:00.0/iommu_group/type": "DMA-FQ\n",
    "sys/devices/pci0000:17/0000:1a:00.0/vendor": "0x15b3\n",
    f"{PORT}/board_id": "MT_0000000838\n",
    f"{PORT}/ports/1/link_layer": "Ethernet\n",
    f"{PORT}/ports/1/state": "4: ACTIVE\n",
    f"{PORT}/ports/1/phys_state": "5: LinkUp\n",
    f"{PORT}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    f"{PORT}/ports/1/counters/link_downed": "2\n",
    f"{PORT}/ports/1/gid_attrs/ndevs/0": "ens1np0\n",
    "sys/class/net/ens1np0/mtu": "9000\n",
    "sys/module/mlx5_core/version": "24.10-2.1.8\n",
    "sys/module/mlx5_core/srcversion": "5A7A7A2C0E6F7E7B8C9D0E1\n",
    "sys/module/mlx5_core/taint": "OE\n",
    "sys/module/ib_core/srcversion": "E04B\n",
    "sys/module/ib_core/taint": "\n",
    "sys/module/ib_uverbs/parameters/built_in": "1\n",
    "var/lib/dpkg/lock-frontend": "",
    "etc/environment": "# CUDA_PROFILE=1\nCUDA_VISIBLE_DEVICES=0,1\nMY_CUDA_PROFILE=1\nCUDA_HOME=/usr/local/cuda\n",
    "etc/profile.d/cuda.sh": "true; export CUDA_LAUNCH_BLOCKING=1 # COMPUTE_PROFILE=1\n",
    "etc/systemd/system.conf": '[Manager]\nDefaultEnvironment="A=1" "CUDA_INJECTION64_PATH=/opt/x.so"\n',
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    **{f"sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor": "performance\n" for n in range(3)},
    "sys/devices/system/cpu/cpufreq/policy3/scaling_governor": "powersave\n",
    "usr/local/cuda-12.4/version.json": VERSION_JSON,
    "etc/resolv.conf": "search example\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n",
    "etc/profile.d/proxy.sh": "no_proxy=localhost\n"
    "export https_proxy='http://ann:pa%40s/s@w@proxy.example:3128/' # x\n",
    "etc/apt/apt.conf.d/95proxy": '// Acquire::http::Proxy "http://old:1";\n'
    'Acquire { http::Proxy "http://[fd00::2]:3142"; }\n'
    'Acquire::https::Proxy "DIRECT";\nAcquire::http::Proxy::deb.example "DIRECT";\n',
    "etc/tdnf/tdnf.conf": "[main]\nproxy=http://p.example:3\n",
    "etc/dnf/dnf.conf": "[main]\n#proxy=http://commented:1\nproxy = https://cache.example\nproxy_username=ann\n",
    "etc/systemd/system/docker.service.d/proxy.conf": "[Service]\n"
    'Environment="HTTP_PROXY=http://u:p@one.example:1" "NO_PROXY=localhost,10.0.0.0/8"\n'
    "EnvironmentFile=-/etc/default/docker\n",
    "etc/systemd/system/containerd.service.d/http.conf": "[Service]\n"
    "Environment=HTTPS_PROXY=http://u:p q@two.example:2\n",
}
READ = RdmaPort("mlx5_0", 1, "0000:1a:00.0", "Ethernet", "ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)", "MT_0000000838",
                2, "ens1np0", 9000)  # fmt: skip

OUTBOUND = Outbound(
    proxies=(
        NamedProxy("proxy.example:3128", "/etc/profile.d/proxy.sh", 2),
        NamedProxy("[fd00::2]:3142", "/etc/apt/apt.conf.d/95proxy", 2),
        NamedProxy("DIRECT", "/etc/apt/apt.conf.d/95proxy", 3),
        NamedProxy("p.example:3", "/etc/tdnf/tdnf.conf", 2),
        NamedProxy("cache.example", "/etc/dnf/dnf.conf", 3),
        NamedProxy("one.example:1", "/etc/systemd/system/docker.service.d/proxy.conf", 2),
    ),
    indirect=("/etc/systemd/system/docker.service.d/proxy.conf",),
    name_server=True,
)


@pytest.fixture(params=[("dash",), ("bash", "--posix"), ("busybox", "ash")], ids=" ".join)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


def machine(root: Path) -> Path:
    make_root(root, {"stat": '#!/bin/sh\nfor path; do case $path in /*) echo "$path 4096 100 200 7 9" ;; esac; done\n'})
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    inode = (root / "var/lib/dpkg/lock-frontend").stat().st_ino
    (root / "proc/locks").write_text(FILES["proc/locks"].format(inode=inode))
    (root / PORT / "device").symlink_to("../../../devices/pci0000:17/0000:1a:00.0")
    return root


def test_every_shell_reads_the_same_machine(shell: tuple[str, ...], tmp_path: Path) -> None:
    host = assemble(run_probe(shell, machine(tmp_path)).stdout, "gpu07")
    assert host.packages.lock_holder == "243 (unattended-upgr)"
    system = host.system
    assert system is not None
    assert (system.uptime_s, system.memory_bytes, system.available_bytes) == (90210, 1056444716 << 10, 900000000 << 10)
    assert (system.swap, system.threads, system.threads_max) == (("/dev/nvme0n1p3",), 812, 192730)
    assert (system.files_open, system.files_max) == (1836, UNLIMITED)
    assert system.lock_held_s == 90210 - 80110, "field 22 counts from the last bracket"
    assert (system.clock_set, system.initramfs) == (True, frozenset({"6.8.0-52-generic"}))
    assert system.var_read_only is True
    assert system.disks[:3] == tuple(FileSystem(path, 200 * 4096, 100 * 4096, 9, 7) for path in ("/", "/boot", "/var"))
    assert system.rdma == (READ,)
    assert system.rdma_modules == (
        RdmaModule("mlx5_core", "24.10-2.1.8", "5A7A7A2C0E6F7E7B8C9D0E1", "OE"), RdmaModule("ib_core", None, "E04B"),
    )  # fmt: skip
    assert [module.foreign for module in system.rdma_modules] == [True, False]
    assert (dict(system.iommu), dict(system.memlock)) == (
        {"0000:41:00.0": "DMA-FQ"},
        {"containerd": 8388608, "dockerd": UNLIMITED},
    )
    assert (system.thp, dict(system.governors or {})) == ("madvise", {"performance": 3, "powersave": 1})
    assert system.cuda == (CudaToolkit("/usr/local/cuda-12.4", "12.4.1", "12.4.131"),)
    assert system.outbound == OUTBOUND, "no comment, no password, no NO_PROXY"
    assert system.variables == (
        SetVariable("CUDA_VISIBLE_DEVICES", "/etc/environment", 2),
        SetVariable("CUDA_LAUNCH_BLOCKING", "/etc/profile.d/cuda.sh", 1),
        SetVariable("CUDA_INJECTION64_PATH", "/etc/systemd/system.conf", 2),
    ), "no comment, no other variable, no value"


def test_a_machine_that_says_nothing_is_not_known(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "boot").rename(root / "elsewhere")
    assert assemble(run_probe(shell, root).stdout, "gpu07").system == SystemFacts(
        variables=(), rdma_modules=(), governors={}, cuda=(), outbound=Outbound(resolv_conf="absent")
    )


def test_more_ports_and_swaps_than_any_host_has_are_not_read(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "proc/swaps").write_text("Filename\n" + "/dev/x partition 1 0 -2\n" * 100)
    for number in range(1, 101):
        (root / f"sys/class/infiniband/rxe{number}/ports/1").mkdir(parents=True)
    system = assemble(run_probe(("sh",), root).stdout, "gpu07").system
    assert system is not None
    assert (len(system.swap or ()), len(system.rdma)) == (16, 64)


def test_a_link_to_nothing_and_more_policies_than_are_read(shell: tuple[str, ...], tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "etc/resolv.conf").symlink_to("/run/nobody/wrote/it")
    for number in range(100):
        path = root / f"sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor"
        path.parent.mkdir(parents=True)
        path.write_text("schedutil\n")
    system = assemble(run_probe(shell, root).stdout, "gpu07").system
    assert system is not None
    assert (system.outbound, dict(system.governors or {})) == (Outbound(resolv_conf="dead"), {"schedutil": 64})


def test_no_password_of_a_proxy_leaves_the_host(shell: tuple[str, ...], tmp_path: Path) -> None:
    stream = run_probe(shell, machine(tmp_path)).stdout
    assert b"proxy.example:3128" in stream
    assert not [word for word in (b"ann", b"pa%40s", b"u:p", b"old:1", b"two.example") if word in stream]


def parsed(system: str, room: str = "") -> SystemFacts | None:
    sections = [f"@ {name} rc=0\n" + "".join(f"|{line}\n" for line in text.splitlines())
                for name, text in (("system", system), ("room", room))]  # fmt: skip
    return parse_system(decode(f"@gpunode-facts 1\n{''.join(sections)}@end\n".encode()))


def test_a_recording_from_before_says_nothing_of_it() -> None:
    assert parse_system(decode(b"@gpunode-facts 1\n@ os rc=0\n@end\n")) is None


@pytest.mark.parametrize(
    "text",
    [
        "uptime=-5\nMemTotal=[N/A]\nMemAvailable=1e9\nthreads=\nlock=x\ntimesync=2",
        f"uptime={'9' * 40}\nMemTotal={'9' * 40}\nlock={'9' * 40}\nthreads={'9' * 5000}",
        "rdma=\nrdma=a|b\nrdma=mlx5_0|one|-|-|-|-|-|-|-|-|-\nrdma=" + "x" * 100 + "|1|-|-|-|-|-|-|-|-|-",
        f"governor=performance {'9' * 40}\ngovernor=fast -1\ngovernor=\ngovernor=a b c\ngovernor={'x' * 90} 4\nthp=a",
        'cuda=/usr/local/cuda-12\ncuda=/etc/cuda "1" "2"\ncuda=/usr/local/cuda-x "1" "2"\nproxy=/etc/environment:1:h',
        "module=\nmodule=a|b\nmodule=mlx5_core|\x1b[31m|-|OE\nmodule=" + "x" * 100 + "|-|-|-",
        "iommu=\niommu=a b c\nmemlock=dockerd\nmemlock=dockerd -1\nmemlock=dockerd 8MB\niommu=a " + "b" * 100,
    ],
    ids=["no numbers", "huge numbers", "odd ports", "odd governors", "odd toolkits", "odd modules", "odd pairs"],
)
def test_what_is_no_answer_is_not_known(text: str) -> None:
    assert parsed(text) == SystemFacts()


def test_odd_proxies_are_passed_over() -> None:
    huge = "9" * 400
    lines = [
        "resolv=present",
        "resolv=dead",
        "dns=2",
        "proxy=/etc/x:1:a b",
        "proxy=etc/x:1:h",
        "proxy=/etc/x:1:\x1b[2J",
    ]
    lines += [f"proxy=/etc/x:{huge}:h", f"proxy=/etc/x:1:{huge}", f"proxy=/{huge}:1:h", "indirect=/etc/x", "unseen="]
    lines += ["unseen=/etc/\x1b[2J", "unseen=/etc/apt/apt.conf.d/95proxy"]
    system = parsed("\n".join(lines))
    assert system is not None
    assert system.outbound == Outbound(unseen=("/etc/apt/apt.conf.d/95proxy",))


@pytest.mark.parametrize(
    "room",
    ["files=1 2\nlimit=x\nmount=/var rx\nmount=/var", "/var 4096 1 2 3\n/var a b c d e\nvar 1 2 3 4 5\n/ -1 2 3 4 5\n"],
    ids=["limits", "disks"],
)
def test_a_line_of_another_form_is_passed_over(room: str) -> None:
    assert parsed("", room) == SystemFacts()


@pytest.mark.parametrize(
    ("mounts", "read_only"),
    [("mount=/ rw", False), ("mount=/ ro", True), ("mount=/ ro\nmount=/var rw", False),
     ("mount=/var rw\nmount=/var ro", True), ("", None)],
    ids=["a part of /", "/ is read-only", "an image with its own /var", "the last mount", "not read"],
)  # fmt: skip
def test_var_is_where_it_is_mounted(mounts: str, read_only: bool | None) -> None:
    system = parsed("", mounts)
    assert system is not None
    assert system.var_read_only is read_only


def test_of_two_engines_of_one_name_the_lower_limit_counts() -> None:
    system = parsed("memlock=containerd 65536\nmemlock=containerd unlimited")
    assert system is not None
    assert dict(system.memlock) == {"containerd": 65536}


@pytest.mark.parametrize(
    ("text", "starts"),
    [("running=1\nfailSwapOn=false # zram", True), ("running=1\nfailSwapOn=true", False), ("running=1", False),
     ("binary=/usr/bin/kubelet\nunreadable=/var/lib/kubelet/config.yaml", None),
     ("failSwapOn=false\nunreadable=/var/lib/kubelet/config.yaml", True)],
    ids=["told to", "told not to", "its default", "its file is unread", "a flag beats the file"],
)  # fmt: skip
def test_a_kubelet_may_be_told_to_start_with_swap(text: str, starts: bool | None) -> None:
    assert parse_kubernetes(text, ()).starts_with_swap is starts


def test_the_kubelets_file_is_read_for_swap(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "var/lib/kubelet").mkdir(parents=True)
    (root / "var/lib/kubelet/config.yaml").write_text("failSwapOn: false\n")
    assert assemble(run_probe(("sh",), root).stdout, "gpu07").kubernetes.starts_with_swap
