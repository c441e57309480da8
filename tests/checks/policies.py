"""Faults of the toolkit's policy, nvidia-modprobe, proxies and tuning, and what passing checks of them find: rows of
test_checks.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpunode.model.facts import DriverFacts, HostFacts, KubernetesFacts
from gpunode.model.files import FileFacts
from gpunode.model.kubernetes import DevicePlugins
from gpunode.model.system import CudaToolkit, ModprobeHelper, NamedProxy, Outbound
from tests.checks import hosts as h

DROP_IN = "/etc/systemd/system/{}.service.d/proxy.conf"
BY_APT = NamedProxy("proxy.example:3128", "/etc/apt/apt.conf.d/95proxy", 1)
BY_LOGIN = NamedProxy("proxy.example:3128", "/etc/environment", 2)
BY_DOCKER = NamedProxy("proxy.example:3128", DROP_IN.format("docker"), 2)
BY_CONTAINERD = NamedProxy("proxy.example:3128", DROP_IN.format("containerd"), 2)
BY_SYSTEMD = NamedProxy("proxy.example:3128", "/etc/systemd/system.conf.d/proxy.conf", 2)
UNREAD = {h.CTK: FileFacts(h.CTK, unread="permission denied")}
OLD = "not in this recording"
NO_SYSTEM = h.host(system=None)


def outbound(*proxies: NamedProxy, **changes: Any) -> HostFacts:
    return h.system(outbound=replace(Outbound(name_server=True), proxies=proxies, **changes))


def helper(mode: int, uid: int = 0, gid: int = 0) -> HostFacts:
    return h.driver(modprobe=ModprobeHelper(mode, uid, gid))


def laptop(host: HostFacts) -> HostFacts:
    """The host with a laptop's GPU, and nothing of a server."""
    seen = h.smi(replace(h.SEEN, name="NVIDIA GeForce RTX 4090 Laptop GPU")).driver.smi
    return replace(host, driver=replace(host.driver, smi=seen), pci=(h.GPU,), kubernetes=KubernetesFacts())


def plugin(config: str | None, **options: str) -> HostFacts:
    """The device plugin has these options, and the toolkit this file."""
    plugins = DevicePlugins("/var/lib/kubelet/device-plugins", processes=(1,), options=options)
    return h.host(files=h.files(ctk=config), kubernetes=replace(h.READY.kubernetes, device_plugins=plugins))


def old(version: str, config: str | None = None) -> HostFacts:
    return replace(h.toolkit(version=version), files=h.files(ctk=config))


FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("os.cpu-governor", h.system(governors={"powersave": 60, "performance": 4}), "60 × powersave, 4 × performance"),
    ("os.proxy-dns", outbound(resolv_conf="dead"), "/etc/resolv.conf is a link to a file that is missing"),
    ("os.proxy-dns", outbound(resolv_conf="absent"), "/etc/resolv.conf is not there"),
    ("os.proxy-dns", outbound(name_server=False), "/etc/resolv.conf names no server"),
    ("os.proxy-dns", outbound(BY_DOCKER, BY_CONTAINERD),
     "docker.service.d/proxy.conf:2 proxy.example:3128 (for docker); /etc/systemd/system/containerd.service.d"),
    ("os.proxy-dns", outbound(BY_APT, BY_DOCKER), "/etc/apt/apt.conf.d/95proxy:1 proxy.example:3128 (for the package"),
    ("os.proxy-dns", outbound(BY_LOGIN), "/etc/environment:2 proxy.example:3128 (for logins)"),
    ("sec.modprobe-suid", helper(0o4757), "/usr/bin/nvidia-modprobe has mode 4757, uid 0 and gid 0"),
    ("sec.modprobe-suid", helper(0o4775, gid=1000), "gid 1000"),
    ("sec.modprobe-suid", helper(0o755, uid=1000), "uid 1000"),
    ("sec.modprobe-suid", laptop(helper(0o755)), "mode 0755"),
    ("sec.visible-devices-policy", plugin(None, DEVICE_LIST_STRATEGY="volume-mounts"),
     "DEVICE_LIST_STRATEGY is volume-mounts"),
    ("sec.visible-devices-policy", plugin("accept-nvidia-visible-devices-envvar-when-unprivileged = false\n"),
     "accept-nvidia-visible-devices-envvar-when-unprivileged = false"),
)  # fmt: skip

# What a check finds where it passes: id, host, evidence; "" where it has nothing to say.
NOTES: tuple[tuple[str, HostFacts, str], ...] = (
    ("os.cpu-governor", h.READY, "64 × performance"),
    ("os.cpu-governor", laptop(h.system(governors={"powersave": 16})), "16 × powersave"),
    ("os.swap", h.system(swap=("/dev/sda3",)), "/proc/swaps: /dev/sda3"),
    ("os.swap", h.system(swap=()), ""),
    ("os.hugepages-thp", h.READY, "/sys/kernel/mm/transparent_hugepage/enabled: madvise"),
    ("os.proxy-dns", h.READY, ""),
    ("os.proxy-dns", outbound(BY_APT), "proxies: /etc/apt/apt.conf.d/95proxy:1 proxy.example:3128 (for the package"),
    ("os.proxy-dns", outbound(replace(BY_LOGIN, host="DIRECT")), ""),
    ("os.proxy-dns", outbound(BY_APT, BY_DOCKER, BY_CONTAINERD), "(for containerd)"),
    ("os.proxy-dns", outbound(BY_LOGIN, BY_SYSTEMD), "(for all services)"),
    ("os.proxy-dns", outbound(BY_LOGIN, BY_DOCKER, indirect=(DROP_IN.format("containerd"),)), "(for docker)"),
    ("os.proxy-dns", replace(outbound(BY_APT, BY_DOCKER), kubernetes=KubernetesFacts()), "(for docker)"),
    ("os.proxy-dns", replace(outbound(BY_LOGIN, BY_CONTAINERD), files=h.files(
        docker='{"proxies": {"http-proxy": "http://proxy.example:3128"}}')), "(for containerd)"),
    ("sec.ctk-mitigation", h.READY, ""),
    ("sec.ctk-mitigation", old("1.17.5", "[features]\ndisable-cuda-compat-lib-hook = true\n"),
     "toolkit 1.17.5: disable-cuda-compat-lib-hook = true keeps CVE-2025-23266 away; not covered: CVE-2025-23267, "
     "CVE-2026-24260, until it is upgraded (sec.ctk-cve)"),
    ("sec.ctk-mitigation", old("1.16.1", "nvidia-container-runtime.mode = 'cdi'\n"
                               "nvidia-container-cli.ldconfig = '/sbin/ldconfig'\n"),
     'mode = "cdi" keeps CVE-2024-0132, CVE-2024-0133, CVE-2025-23359 away; not covered: CVE-2024-0134, CVE-2024-0135, '
     "CVE-2024-0136, CVE-2024-0137, CVE-2025-23266, CVE-2025-23267, CVE-2026-24260, until"),
    ("sec.ctk-mitigation", old("1.17.0"), "the host's ldconfig keeps CVE-2024-0136, CVE-2024-0137 away; not covered: "
     "CVE-2024-0135, CVE-2025-23359, CVE-2026-24260, until"),
    ("sec.modprobe-suid", h.READY, "/usr/bin/nvidia-modprobe has mode 4755, uid 0 and gid 0"),
    ("sec.modprobe-suid", helper(0o755), "only root loads modules and makes device nodes with it"),
    ("sec.modprobe-suid", laptop(helper(0o4755)), "mode 4755"),
    ("sec.visible-devices-policy", h.READY, "is true by default: any container may ask for all GPUs"),
    ("sec.visible-devices-policy", plugin(
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n"
        "accept-nvidia-visible-devices-as-volume-mounts = true\n", DEVICE_LIST_STRATEGY="volume-mounts"),
     "= false: only privileged containers may ask for GPUs by NVIDIA_VISIBLE_DEVICES; accept-nvidia-visible-devices-as-"
     "volume-mounts = true"),
    ("sec.visible-devices-policy", plugin(None, DEVICE_LIST_STRATEGY="volume-mounts,cdi-cri"), "by default"),
    ("sec.visible-devices-policy", plugin(
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false\n", CONFIG_FILE="/config.yaml"), "= false"),
    ("user.cuda-toolkit-optional", h.READY, ""),
    ("user.cuda-toolkit-optional", h.system(cuda=(CudaToolkit("/usr/local/cuda-12.4", "12.4.1", "12.4.131"),
                                                  CudaToolkit("/usr/local/cuda-13.0"))),
     "/usr/local/cuda-12.4: CUDA 12.4.1, nvcc 12.4.131; /usr/local/cuda-13.0: CUDA of unknown version, nvcc not in it"),
    ("user.cuda-toolkit-optional", h.host(packages=h.packages(nvidia__cuda__toolkit="11.5.1")),
     "package nvidia-cuda-toolkit 11.5.1-1"),
)  # fmt: skip

NO_VERDICT: tuple[tuple[str, HostFacts, str], ...] = (
    *((id, NO_SYSTEM, "this recording does not have it") for id in (
        "os.cpu-governor", "os.hugepages-thp", "os.proxy-dns", "user.cuda-toolkit-optional")),
    ("os.cpu-governor", h.system(governors=None), OLD),
    ("os.cpu-governor", h.system(governors={}), "no cpufreq here"),
    ("os.cpu-governor", h.host(platform="container"), "the machine around it"),
    ("os.hugepages-thp", h.system(thp=None), "is not there, or was not read"),
    ("os.proxy-dns", h.system(outbound=None), OLD),
    ("os.proxy-dns", outbound(BY_DOCKER, BY_CONTAINERD, unseen=("/etc/apt/apt.conf.d/95proxy",)),
     "/etc/apt/apt.conf.d/95proxy cannot be read: whether the package manager has a proxy is not known"),
    ("sec.ctk-mitigation", h.toolkit(version="devel"), "cannot be compared"),
    ("sec.ctk-mitigation", old("1.17.5"), "no workaround of toolkit 1.17.5 is set: sec.ctk-cve"),
    ("sec.ctk-mitigation", replace(h.toolkit(version="1.17.5"), files=UNREAD), "permission denied"),
    ("sec.ctk-mitigation", old("1.19.0", 'nvidia-container-runtime.mode = "cdi"\n'), "no workaround of toolkit 1.19.0"),
    ("sec.modprobe-suid", h.driver(modprobe=None), "was not read"),
    ("sec.modprobe-suid", h.driver(modprobe="absent"), "is not installed"),
    ("sec.modprobe-suid", replace(h.READY, driver=DriverFacts(container=True)), "a driver container"),
    ("sec.visible-devices-policy", h.host(files=UNREAD), "permission denied"),
    ("sec.visible-devices-policy", h.host(files=h.files(
        ctk="accept-nvidia-visible-devices-as-volume-mounts = 'maybe'\n")), "is neither true nor false"),
    ("sec.visible-devices-policy", h.toolkit(operator="/usr/local/nvidia/toolkit"), "GPU Operator"),
    ("user.cuda-toolkit-optional", h.system(cuda=None), "this recording does not have it"),
)  # fmt: skip
