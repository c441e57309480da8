"""Every check passes on a healthy host, finds its fault, and says why when it cannot give a verdict."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, explain, run_all
from gpunode.cli.app import main
from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import (
    CliInfo,
    DriverFacts,
    HostFacts,
    JournalFacts,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    SecurityFacts,
    ServiceFacts,
    StuckProcess,
    ToolkitFacts,
)
from gpunode.model.files import FileFacts
from gpunode.model.initramfs import DracutFacts, InitramfsImage
from gpunode.model.kernel_log import AerCounters, LoggedSxid, LoggedXid
from gpunode.model.kubernetes import Gate, KubeletSettings
from gpunode.model.packages import PackageFacts, PackageVersion
from gpunode.model.report import CheckResult, Finding, NotApplicable, Severity
from gpunode.model.smi import SmiFacts, SmiGpu
from gpunode.model.spec import DriverRequest, Expectation, MigLayout, RuntimeSpec, Spec, ToolkitConfig
from gpunode.remedy import RepairAction
from tests.checks import expectations, gpu_faults, policies, starts
from tests.checks import hosts as h
from tests.checks import of_the_machine as machine

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
# Those of setup.* are the planner's to find (test_agreement.py), sec.cve-db-age is about no host (test_cve_db_age.py),
# and svc.*, smoke.*, fleet.*, k8s.* and what goes with it, and those of other engines have files of their own.
ELSEWHERE = (
    "setup.",
    "sec.cve-db-age",
    "svc.",
    "k8s.",
    "mig.mixed-with-mps",
    "mig.uniform",
    "sec.operator-cve",
    "smoke.",
    "fleet.",
    "health.smoke-memtest",
    "rt.crio",
    "rt.k3s",
    "rt.podman",
    "rt.dropin-version",
    "rt.runtime-type",
)
IDS = tuple(doc.id for doc in all_checks() if not doc.id.startswith(ELSEWHERE))
# Of what the healthy host is not or does not have; rows of PASSES are healthy ones.
NOT_ITS_OWN = ("user.smi-hidden", "dev.container", "dev.caps", "drv.vgpu", "net.efa", "user.cuda-driver-api",
               "health.p2p", "net.ib-flap", "net.nic-gpu-affinity", "pci.acs",
               *machine.LISTED)  # fmt: skip
# They find nothing wrong, they say what is there.
INFORMATIVE = ("os.hugepages-thp", "os.swap", "sec.ctk-mitigation", "user.cuda-toolkit-optional")
WANT = Spec(expect=expectations.EXPECTED, runtime=RuntimeSpec(cdi=True))
NO_ENGINE = h.host(runtimes=())
BARE = HostFacts("bare", "bare", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=False)
OLD_BOX = replace(h.gpu(device="102d"), driver=h.READY.driver)  # K80
LEGACY = """[plugins."io.containerd.grpc.v1.cri".containerd.default_runtime]
  runtime_type = "io.containerd.runc.v2"
"""
KEY = "[  7.1] Loading of module with unavailable key is rejected"
LOCKED = "[  7.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"
TWICE = {"nvidia-driver-cuda": ("3:580.178.04-1.el9", "3:1000.1.07-1.el9"), "vim": ("1", "2")}
AVC = (
    '[  812.1] audit: type=1400 audit(1795.1:2): avc:  denied  {{ {} }} for  pid=9 comm="modprobe" {}="{}" '
    "dev=sda1 scontext=a tcontext=b tclass=system permissive=0"
)
FS_BUILT = DkmsLine("nvidia-fs", "2.26.6", h.KERNEL, "installed")
LIBS = dict(h.READY.driver.libraries)
HUNG, DEAD = StuckProcess(4242, "python3", "D", 3), StuckProcess(4243, "python3", "Z", 3, 4242)
MISMATCH = "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"
WELL = SmiGpu(0, h.GPU.address, "H100", uuid="GPU-1")
NO_HANDLE = "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error"
LOST = replace(WELL, fault="lost", fault_fields=(NO_HANDLE,))
RESET = replace(WELL, fault="reset-required", fault_fields=("power: GPU requires reset",))


def verdict(id: str, host: HostFacts, spec: Spec | None = WANT) -> CheckResult:
    return run_all(host, spec, load_catalog(), today=h.TODAY).results[id]


def dracut(**more: Any) -> HostFacts:
    """A host with this image of dracut's."""
    images = (InitramfsImage(h.KERNEL, "/boot/i", **more),)
    return h.kernel(dracut=DracutFacts(frozenset({"nouveau", "nvidia"}), frozenset(), images=images))


OTHER_VERSION_NEXT = replace(
    h.kernel(trees=(h.TREE, replace(h.TREE, release="6.1.0-51-amd64")), next_boot="6.1.0-51-amd64"),
    driver=h.driver(
        libraries={"libcuda.so.1": (f"/usr/lib/libcuda.so.{h.V}",)},
        dkms=(
            DkmsLine("nvidia", h.V, h.KERNEL, "installed"),
            DkmsLine("nvidia", "580.95.05", "6.1.0-51-amd64", "installed"),
        ),
    ).driver,
)
FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    *gpu_faults.FAULTS,
    *expectations.FAULTS,
    *expectations.UNSAID,
    *machine.FAULTS,
    *policies.FAULTS,
    *starts.FAULTS,
    ("boot.cmdline-blocks", h.kernel(barred=frozenset({"nouveau", "nvidia_uvm"})), "names nvidia_uvm"),
    ("boot.cmdline-blocks", h.kernel(cmdline="quiet modprobe.blacklist=foo,nvidia"), "modprobe.blacklist=foo,nvidia"),
    (
        "boot.initramfs", dracut(modules=frozenset({"nouveau"})), "lsinitrd /boot/i shows nouveau and no blacklist",
    ),
    (
        "boot.initramfs", dracut(modules=frozenset({"nvidia"}), newer=frozenset({"module"})), "on disk is newer",
    ),
    ("boot.module-signer", h.driver(loaded=None, signer=None), "modinfo -F signer"),
    *((id, replace(h.driver(loaded=None, kernel_log=log), security=known), quoted)
      for id in ("boot.module-signer", "drv.module-loaded")
      for log, known, quoted in (
          ((), SecurityFacts(True, mok_enrolled=False), "prints DKMS key; mokutil --test-key: the key of DKMS is not"),
          ((), SecurityFacts(True, mok_pending=True), "enrolment as pending"),
          ((LOCKED,), SecurityFacts(True), f"prints DKMS key; kernel log: {LOCKED}"),
          ((KEY,), SecurityFacts(True), f"prints DKMS key; kernel log: {KEY}"))),
    ("boot.module-signer", replace(h.driver(), security=SecurityFacts(True, lockdown="integrity", mok_enrolled=False)),
     f"{h.V} is loaded; mokutil --test-key: the key that DKMS signs with now is not enrolled"),
    ("boot.nouveau-blacklisted", h.kernel(blacklisted=frozenset()), "blacklist nouveau"),
    ("boot.nouveau-loaded", h.kernel(modules=frozenset({"nouveau"})), "/sys/module/nouveau"),
    ("boot.nouveau-loaded", h.kernel(modules=frozenset({"nova_core"})), "/sys/module/nova_core"),
    ("boot.pending-reboot", h.kernel(reboot_required="linux-base\n"), "linux-base"),
    ("ctk.cdi-duplicate", replace(h.toolkit(cdi_specs=(h.CDI, "/etc/cdi/nvidia.yaml")), files=h.files(
        cdi="kind: nvidia.com/gpu\ndevices:\n- name: all\n", cdi2="kind: nvidia.com/gpu\ndevices:\n- name: all\n")),
     "/etc/cdi/nvidia.yaml: all"),
    ("ctk.cdi-fresh", h.host(files=h.files(cdi="kind: nvidia.com/gpu\nlibcuda.so.580.1")), h.V),
    ("ctk.cdi-present", h.toolkit(cdi_devices=()), h.CDI),
    ("ctk.cdi-devices", h.host(files=h.files(cdi=f'kind: nvidia.com/gpu\ndevices:\n- name: "1"\n- name: "all"\n'
                                                 f"hostPath: libcuda.so.{h.V}")), "1 not here, 0 not in it"),
    ("ctk.cdi-readable", h.host(files=h.files(cdi="cdiVersion: 0.7.0\nkind: nvidia.com/gpu"), runtimes=(
        replace(h.DOCKER_ENGINE, version="26.0.0", cdi=True),)), "CDI version 0.7.0"),
    ("ctk.cdi-refresh-unit", h.host(services={"nvidia-cdi-refresh.path": ServiceFacts("loaded", enabled="disabled")}),
     "disabled"),
    ("ctk.config", h.host(files=h.files(ctk="\nnvidia-container-cli.no-cgroups = true\n")),
     f"{h.CTK}:2 no-cgroups = true"),
    ("ctk.config", h.host(files=h.files(ctk='nvidia-container-cli.ldconfig = "/sbin/ldconfig"')),
     f"{h.CTK}:1 ldconfig"),
    ("ctk.config", h.host(files=h.files(ctk='nvidia-container-runtime.mode = "fast"')), "mode = fast"),
    ("ctk.config", h.host(files=h.files(ctk='nvidia-container-cli.root = "/run/nvidia/driver"')), f"{h.CTK}:1 root"),
    ("ctk.config", h.host(files=h.files(ctk='nvidia-container-runtime.mode = "csv"')), f"{h.CTK}:1 mode = csv"),
    ("ctk.config", h.host(files=h.files(ctk='[nvidia-container-cli]\nno-cgroups =\n')), f"{h.CTK}:2:13"),
    *(("ctk.cli-info", h.toolkit(cli=cli), f"nvidia-container-cli --load-kmods=false info, exit {cli.code}: {says}")
      for cli, says in (
          (CliInfo(1, None, MISMATCH), MISMATCH),
          (CliInfo(124), "no message"),
          (CliInfo(0, "580.178.04"), f"NVRM version 580.178.04; /sys/module/nvidia/version holds {h.V}"))),
    ("ctk.installed", h.toolkit(version=None), "nvidia-ctk --version"),
    ("ctk.installed", h.toolkit(runtime_path=None), "nvidia-container-runtime is not in PATH"),
    ("ctk.installed", replace(h.toolkit(hook_path=None), packages=h.packages(nvidia__container__toolkit="")),
     "nvidia-container-runtime-hook is not in PATH"),
    ("ctk.installed", h.toolkit(runtime_executable=False), "/usr/bin/nvidia-container-runtime is not executable"),
    ("ctk.legacy-packages", h.host(packages=h.packages(nvidia__docker2="2.13")), "nvidia-docker2 2.13"),
    ("ctk.repo", h.host(packages=replace(h.packages(), sources=(
        FileFacts("/etc/apt/x.list", "deb https://nvidia.github.io/nvidia-docker/ubuntu18.04 /"),))),
     "/etc/apt/x.list:1"),
    ("ctk.versions-match", h.host(packages=h.packages(libnvidia__container1="1.17.8")), "libnvidia-container1 1.17.8"),
    ("dev.char-symlinks", replace(h.node("/dev/nvidia0", char_link=False),
                                  toolkit=ToolkitFacts("1.17.8")), "/dev/char/195:0"),
    ("dev.modes", h.node("/dev/nvidia0", mode=0o600), "0600"),
    ("dev.nodes", h.host(devices=()), "/dev/nvidiactl"),
    ("dev.nodes", h.host(devices=h.READY.devices[1:]), "no /dev/nvidia0"),
    ("dev.nodes", h.node("/dev/nvidia0", major=10), "major 10"),
    ("dev.container", h.host(platform="container", devices=()), "/dev/nvidiactl"),
    ("dev.container", replace(h.driver(libraries={}), platform="container"), "libcuda.so.1"),
    ("dev.container", replace(h.driver(loaded="580.178.04"), platform="container"), "580.178.04"),
    ("dev.uvm", h.node("/dev/nvidia-uvm", major=510), "510"),
    ("dev.uvm", h.host(devices=h.READY.devices[:2]), "511"),
    ("drv.branch-eol", h.driver(loaded="550.163.01"), "550.163.01"),
    ("drv.branch-vs-arch", h.driver(loaded="470.256.02"), "470.256.02"),
    ("drv.branch-vs-arch", h.gpu(device="1db6"), "Volta"),
    ("drv.branch-vs-arch", replace(h.gpu(device="3182"), driver=h.driver(loaded="570.148.08").driver), "from 580 on"),
    ("drv.branch-vs-arch", replace(h.gpu(device="0ff2"), driver=h.driver(loaded="470.256.02").driver), "to 367"),
    ("drv.dkms-next", h.kernel(trees=(h.TREE, replace(h.TREE, release="6.1.0-51-amd64", nvidia_module=None)),
                               next_boot="6.1.0-51-amd64"), "/boot/vmlinuz-6.1.0-51-amd64"),
    ("drv.dkms-next", h.kernel(trees=(h.TREE, replace(h.TREE, release="6.1.0-49", nvidia_module=None))), "6.1.0-49"),
    ("drv.dkms-next", OTHER_VERSION_NEXT, f"nvidia/580.95.05, 6.1.0-51-amd64: installed; /usr/lib/libcuda.so.{h.V}"),
    ("drv.dkms-running", replace(h.kernel(trees=(replace(h.TREE, nvidia_module=None),)),
                                 driver=replace(h.READY.driver, dkms=(DkmsLine("nvidia", h.V, None, "added"),))),
     "added"),
    ("drv.dkms-running", replace(h.kernel(trees=(replace(h.TREE, nvidia_module=None),)), driver=replace(
        h.READY.driver, dkms=(DkmsLine("nvidia", h.V, None, "added"), FS_BUILT))),
     f"dkms status: nvidia/{h.V}, no kernel: added"),
    ("drv.flavour-vs-arch", h.gpu(device="1db6"), "Volta"),
    ("drv.headers-meta", h.host(packages=h.packages(linux__headers__amd64="")), "linux-image-amd64"),
    ("drv.headers-running", h.kernel(trees=(replace(h.TREE, headers=False),)), f"/lib/modules/{h.KERNEL}/build"),
    ("drv.install-method", h.driver(runfile=True), "/usr/bin/nvidia-uninstall"),
    ("drv.modprobe-options", h.kernel(options=(replace(h.MODE_OPTION, value="0660"),)), "0660"),
    ("drv.module-loaded", h.driver(loaded=None), "/sys/module/nvidia is absent"),
    ("drv.module-loaded", h.driver(loaded=None, installed=None), "modinfo"),
    ("drv.module-loaded", replace(h.driver(loaded=None, installed=None, dkms=()), packages=PackageFacts("apt", {
        "nvidia-open": PackageVersion(h.V, "iU"), "nvidia-kernel-open-dkms": PackageVersion(h.V, "iF")})),
     "nvidia-kernel-open-dkms 595.91.07 has status 'iF'"),
    ("drv.module-loaded", replace(h.driver(loaded=None, installed=None), packages=PackageFacts("apt")),
     "/sys/module/nvidia is absent and modinfo"),
    ("drv.module-loaded", h.driver(initstate="coming"), "coming"),
    ("drv.package-consistency", h.host(packages=h.packages(nvidia__open="580.178.04")), "580.178.04: nvidia-open"),
    ("drv.package-consistency", h.host(packages=PackageFacts("apt", {"nvidia-open": PackageVersion(h.V, "iF")})),
     "'iF'"),
    ("drv.package-consistency", h.host(packages=PackageFacts("apt", {"dkms": PackageVersion("3.0", "ri")})), "'ri'"),
    ("drv.package-consistency", h.host(packages=replace(h.packages(), manager="dnf", doubled=TWICE)),
     "rpm -q nvidia-driver-cuda prints 3:580.178.04-1.el9 and 3:1000.1.07-1.el9"),
    ("drv.compiler-match", h.gcc("4:11.2.0-1ubuntu1"), "/proc/version names gcc 12; package gcc 4:11.2.0-1ubuntu1"),
    ("dev.selinux", h.enforcing(AVC.format("module_load", "path", "/usr/lib/modules/6.1/extra/nvidia.ko")),
     "avc: denied { module_load }, 1 × about /usr/lib/modules/6.1/extra/nvidia.ko"),
    ("dev.selinux", h.enforcing(AVC.format("read write", "name", "nvidiactl")), "{ read write }, 1 × about nvidiactl"),
    ("drv.excluded-gpus", h.driver(params={"ExcludedGpus": "GPU-1,GPU-2"}), "ExcludedGpus: GPU-1, GPU-2"),
    ("drv.excluded-gpus", h.driver(params={"GpuBlacklist": "GPU-1"}), "GPU-1"),
    ("drv.flavour", h.driver(installed_flavour="proprietary"), "/proc/driver/nvidia/version: open"),
    ("drv.flavour", replace(h.gpu(device="2901"), driver=h.driver(installed_flavour="proprietary").driver),
     "modinfo -F license nvidia: proprietary"),
    ("drv.vgpu", h.licensed("Unlicensed (Restricted)"), "license_status: Unlicensed (Restricted)"),
    ("drv.vgpu", h.licensed("Unlicensed"), "license_status: Unlicensed"),
    ("dev.caps", h.instances(2), "no node of an instance"),
    ("dev.caps", h.instances(2, 1, 2, 3, 4), "nvidia-cap3, /dev/nvidia-caps/nvidia-cap4"),
    ("drv.rm-init", h.driver(kernel_log=("NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x26:0xffff:1482)",)), "0x26"),
    ("os.kernel-supported", replace(h.driver(installed="580.126.18"), kernel=replace(
        h.READY.kernel, trees=(replace(h.TREE, release="7.0.9-1-generic", nvidia_module=None),))), "7.0.9-1-generic"),
    ("rt.drop-ins", h.host(runtimes=(replace(h.READY.runtimes[0], name="k0s", embedded_in="1.36.1+k0s.0"),),
     files={"/etc/k0s/containerd.d/a.toml": FileFacts("/etc/k0s/containerd.d/a.toml", "version = 2\n")}),
     "expected 3, got 2"),
    ("rt.drop-ins", h.host(runtimes=(replace(h.READY.runtimes[0], name="crio"),),
     files={"/etc/crio/conf.d/99-nvidia.toml": FileFacts("/etc/crio/conf.d/99-nvidia.toml", "[crio]\n")}),
     "CRI-O reads"),
    ("drv.running-vs-installed", h.driver(installed="595.99.01"), "595.99.01"),
    ("drv.running-vs-userspace", h.driver(libraries=LIBS | {"libcuda.so.1": ("/usr/lib/libcuda.so.580.178.04",)}),
     "libcuda.so.580.178.04"),
    ("drv.uvm-loaded", replace(h.kernel(modules=frozenset({"nvidia"})), uvm_major=None), "/sys/module/nvidia_uvm"),
    ("drv.version-running", h.driver(loaded="weird"), "'weird'"),
    ("boot.crash-evidence", h.kernel_state(crashes=("dmesg-efi-171",)), "/sys/fs/pstore has dmesg-efi-171"),
    ("drv.gsp-firmware", h.log(firmware_missing=("nvidia/595.91.07/gsp_ga10x.bin",)), "nvidia/595.91.07/gsp_ga10x.bin"),
    ("drv.gsp-policy", h.driver(params={"EnableGpuFirmware": "0"}), "EnableGpuFirmware: 0"),
    ("drv.taint", h.kernel_state(taint=12289 | 1 << 7), "tainted is 12417: D: an oops"),
    ("health.hang-detector", h.log(hung_tasks=2, hung_in_driver=1), "1 × blocked for more than"),
    ("health.processes-stuck", replace(h.log(hung_tasks=2, hung_in_driver=1), driver=h.driver(stuck=(HUNG,)).driver),
     "/proc/4242/stat: D, the same wait at two looks 3 s apart; kernel log: 1 × blocked for more than, with [nvidia]"),
    ("health.processes-stuck", h.driver(stuck=(replace(HUNG, seconds=33),), smi=SmiFacts(124)),
     "33 s apart; nvidia-smi did not answer"),
    ("health.processes-stuck", h.driver(stuck=(replace(HUNG, seconds=60),)), "two looks 60 s apart"),
    ("health.processes-stuck", h.driver(stuck=(HUNG, DEAD)), "4243/stat: Z at two looks 3 s apart; its parent 4242"),
    ("health.processes-stuck", h.driver(stuck=(DEAD, replace(DEAD, pid=7, parent=None))),
     "/proc/7/stat: Z at two looks 3 s apart; a thread of it holds /dev/nvidia*"),
    ("health.mce", h.kernel_state(memory_uncorrected=2), "edac/mc/*/ue_count: 2"),
    ("health.nvlink-rxdetect", h.log(links_undetected=4), "kernel log: 4 × Rx Detect Link mask"),
    ("health.sxid", h.log(sxids=(LoggedSxid(20034, "0000:07:00.0", 2, 89_000, True, 30),)),
     "SXid 20034 of 0000:07:00.0 2 times, last 89000 s after boot"),
    ("health.xid-extended", h.log(xids=(LoggedXid(154, "0000:41:00", last_s=89_000, recovery="Reset"),)),
     "Xid 154 of 0000:41:00.0 once, 89000 s after boot"),
    ("health.xid-recent", h.log(xids=(LoggedXid(95, "0000:41:00", 2, 89_000),)),
     "Xid 95 of 0000:41:00.0 2 times, last 89000 s after boot"),
    ("pci.aer-errors", h.kernel_state(aer={h.GPU.address: AerCounters(3, 1, 2)}), "2 fatal, 1 not fatal, 3 corrected"),
    ("health.gpu-lost", h.smi(LOST), NO_HANDLE),
    ("health.gpu-lost", h.driver(smi=SmiFacts(15, NO_HANDLE, gpus=(LOST,))), NO_HANDLE),
    ("health.reset-required", h.smi(RESET), "0000:41:00.0: power: GPU requires reset"),
    *(("health.reset-required", h.smi(h.SEEN, replace(WELL, reset_flags=(flag,))), f"gpu_reset_status/{flag}: Yes")
      for flag in ("reset_required", "drain_and_reset_recommended")),
    *(("health.recovery-action", h.smi(replace(WELL, recovery=action)), f"gpu_recovery_action: {action}")
      for action in ("Reset", "Reboot", "Drain P2P", "Drain and Reset", "Pray")),
    ("health.readable", h.smi(replace(WELL, fault="error", fault_fields=("fan_speed: ERR!",))), "fan_speed: ERR!"),
    *(("health.power-readable", h.smi(replace(WELL, fault="error", fault_fields=(f"{field}: ERR!", "pci/x: ERR!"))),
       f"{h.GPU.address}: {field}: ERR!") for field in ("temperature/gpu_temp", "gpu_power_readings/power_draw")),
    ("pci.bar1-size", h.gpu(bar1_bytes=0), "resource line 2"),
    ("pci.count-vs-driver", h.driver(gpus=()), h.GPU.address),
    ("pci.count-vs-driver", h.driver(smi=SmiFacts(0, driver_version=h.V)), "nvidia-smi -q -x"),
    ("pci.device-support", OLD_BOX, "Kepler"),
    ("pci.driver-bound", h.gpu(driver="nouveau"), "points to nouveau"),
    ("pci.driver-bound", h.gpu(driver=None), "driver is absent"),
    ("pci.expected-count", h.host(pci=(h.GPU, replace(h.GPU, address="0000:61:00.0"))), "0000:61:00.0"),
    ("pci.fallen-off-bus", h.gpu(config_head="ffffffff"), "ff ff ff ff"),
    ("pci.fallen-off-bus", h.driver(kernel_log=("NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.",)), "kernel log"),
    ("pci.gpu-present", h.host(pci=()), "0x10de"),
    ("pci.link-width", h.gpu(link_width=8), "current_link_width is 8"),
    ("pci.numa", h.host(pci=(h.GPU, replace(h.GPU, address="0000:61:00.0", numa_node=-1))), "0000:61:00.0/numa_node"),
    ("pci.nvswitch-present", h.host(pci=(h.GPU, *h.SWITCHES[:3])), h.SWITCHES[0].address),
    ("pci.runtime-pm", h.gpu(runtime_status="suspended"), "runtime_status"),
    ("rt.cgroup-driver", h.containerd(systemd_cgroup={"nvidia": False, "runc": True}), "runc true, nvidia false"),
    ("rt.cgroup-driver", h.host(kubernetes=KubernetesFacts(True, "cgroupfs")), "cgroupfs"),
    ("rt.config-drift", h.host(files=h.files(docker="{}")), "since an unknown time; gpunode left "),
    ("rt.containerd-file", h.host(files=h.files(containerd="version = 2\n")), "/etc/containerd/config.toml"),
    ("rt.containerd-file", h.host(files=h.files(containerd=h.CONTAINERD + LEGACY)),
     "config.toml:7"),
    ("rt.containerd-live", h.containerd(handlers=("runc",)), "handlers runc"),
    ("rt.cri-disabled", replace(h.containerd(cri_error="unknown service runtime.v1.RuntimeService"),
                                files=h.files(containerd='disabled_plugins = ["cri"]')),
     "config.toml:1 disabled_plugins"),
    ("rt.cri-disabled", h.containerd(cri_error="unknown service"), "unknown service"),
    ("rt.daemon-restart-safe", h.docker(live_restore=False, containers_running=3), "ContainersRunning 3"),
    ("rt.docker-file", h.host(files=h.files(docker="{,}")), "daemon.json:1:2"),
    ("rt.docker-file", h.host(files=h.files(docker="[" * 100_000)), "daemon.json"),
    ("rt.docker-file", h.host(files=h.files(docker=None)), "is absent"),
    *(
        (id, h.host(files={**h.READY.files, path: FileFacts(path, unread=why)}), f"{path} cannot be read: {why}")
        for id, path in (
            ("rt.docker-file", "/etc/docker/daemon.json"),
            ("rt.containerd-file", "/etc/containerd/config.toml"),
        )
        for why in ("not a regular file", "it is a symbolic link to /gone, which is missing")
    ),
    ("rt.docker-gpus", h.docker(started_at=1_794_999_000), "process 900 started 1000 s before /usr/bin/nvidia-"),
    (
        "rt.docker-gpus",
        replace(h.docker(started_at=1_794_999_000, containers_running=2), files=h.files(docker="{,}")),
        "process 900 started 1000 s before",
    ),
    ("rt.docker-live", h.docker(handlers=("runc",)), "Runtimes runc"),
    ("rt.effective-default", h.docker(effective_default="runc"), "docker /info: default runc"),
    ("rt.effective-default", h.containerd(effective_default="runc"), "config.toml:3 default_runtime_name = nvidia"),
    ("rt.handler-binary", h.toolkit(runtime_path=None), "not in PATH"),
    ("rt.present", h.docker(active=False), "docker.service"),
    ("rt.runc-version", h.containerd(version="1.6.20"), "1.7"),
    ("rt.engine-eol", h.containerd(version="1.6.20"), "1.6"),
    ("rt.runc-version", h.containerd(runc_version="1.3.2"), "1.3.2"),
    ("sec.docker-socket", h.docker(socket_mode=0o666), "/run/docker.sock has mode 0666"),
    ("sec.driver-bulletin", h.driver(loaded="595.58.03"), "595.58.03"),
    ("sec.ctk-cve", h.toolkit(version="1.17.4"), "1.17.4"),
    ("user.libcuda", h.driver(libraries={}), "libcuda.so.1"),
    ("user.libnvml", h.driver(libraries={}), "libnvidia-ml.so.1"),
    ("user.smi-hidden", replace(h.driver(smi=SmiFacts(6, "No devices were found")), root=False), h.GPU.address),
    ("user.smi-works", h.driver(smi=SmiFacts(18, "Failed to initialize NVML")), "exit 18: Failed to initialize NVML"),
    ("user.smi-works", h.driver(smi=SmiFacts(124)), "exit 124"),
    ("user.smi-works", h.driver(smi=SmiFacts(0, "Segmentation fault")), "exit 0: Segmentation fault"),
    ("user.stale-libs", h.driver(libraries=LIBS | {
        "libcuda.so.1": ("/a/libcuda.so.595.91.07", "/b/libcuda.so.550.163.01")}),
     "/b/libcuda.so.550.163.01"),
)  # fmt: skip


@pytest.mark.parametrize(("id", "host", "quoted"), [pytest.param(*row, id=f"{row[0]}: {row[2]}") for row in FAULTS])
def test_a_fault_is_found_quoted_and_given_a_remedy(id: str, host: HostFacts, quoted: str) -> None:
    outcome = verdict(id, host).outcome
    assert isinstance(outcome, Finding)
    assert quoted in outcome.evidence
    assert outcome.summary
    assert outcome.remedy


@pytest.mark.parametrize("id", [i for i in IDS if i not in INFORMATIVE])
def test_every_check_has_a_fault_that_it_finds(id: str) -> None:
    assert any(row[0] == id for row in FAULTS)


@pytest.mark.parametrize("id", [i for i in IDS if i not in NOT_ITS_OWN])
def test_every_check_passes_on_the_healthy_host(id: str) -> None:
    assert verdict(id, h.READY).outcome is None


@pytest.mark.parametrize(
    ("id", "host"), [pytest.param(row[0], row[2], id=": ".join(row[:2])) for row in (*machine.PASSES, *starts.PASSES)]
)
def test_what_is_no_fault_of_the_machine_passes(id: str, host: HostFacts) -> None:
    assert verdict(id, host).outcome is None


def hgx(gpus: int, switches: int, device: str = h.SWITCH.device) -> HostFacts:
    """A board, or several, with so many GPUs, the last of them passed through, and NVSwitches of this model."""
    board = [replace(h.GPU, address=f"0000:4{n:x}:00.0") for n in range(gpus)]
    board[-1] = replace(board[-1], driver="vfio-pci")
    return h.host(
        pci=(*board, *(replace(h.SWITCH, address=f"0000:0{n:x}:00.0", device=device) for n in range(switches)))
    )


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (hgx(8, 4), None),
        (hgx(16, 12, "1af1"), None),
        (hgx(7, 4), "7 GPUs are on the PCI bus, and a board with 4 NVSwitches has 8"),
        (hgx(7, 3), "7 GPUs are on the PCI bus, and a board with 3 NVSwitches has 8"),
        (hgx(15, 12, "1af1"), "15 GPUs are on the PCI bus, and boards with 12 NVSwitches have 16"),
    ],
    ids=["HGX H100", "two boards of A100", "a GPU is lost", "and a switch", "one of sixteen"],
)
def test_without_an_expected_number_a_board_with_nvswitches_says_how_many_gpus_it_has(
    host: HostFacts, says: str | None
) -> None:
    found = verdict("pci.expected-count", host, None).outcome
    assert (found.summary if isinstance(found, Finding) else found) == says


@pytest.mark.parametrize("lockdown", ["none", None], ids=["shim does not validate", "not known"])
def test_a_key_that_is_not_enrolled_is_no_fault_where_the_kernel_takes_any_module(lockdown: str | None) -> None:
    security = SecurityFacts(True, lockdown=lockdown, mok_enrolled=False)
    assert verdict("boot.module-signer", replace(h.driver(), security=security)).outcome is None


def test_specifications_of_other_kinds_are_no_second_one_of_the_gpus() -> None:
    """The device plugin writes one of its own, the GPU Operator another: no node with CDI would be without."""
    kinds = {"k8s.device-plugin.nvidia.com-gpu.json": '{"kind":"k8s.device-plugin.nvidia.com/gpu"}',
             "management.nvidia.com-gpu.yaml": "kind: management.nvidia.com/gpu\n"}  # fmt: skip
    others = {f"/var/run/cdi/{name}": h._file(f"/var/run/cdi/{name}", text) for name, text in kinds.items()}
    host = h.toolkit(cdi_specs=(h.CDI, *others))
    host = replace(host, files={**host.files, **others})
    for id in ("ctk.cdi-duplicate", "ctk.cdi-devices"):
        assert verdict(id, host).outcome is None


def test_a_stale_specification_that_setup_does_not_make_is_not_left_to_setup() -> None:
    """setup names it no step: the plan said that nothing changes, and the remedy was that plan."""
    path = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"
    text = '{"kind":"k8s.device-plugin.nvidia.com/gpu","hostPath":"/usr/lib/libcuda.so.580.1"}'
    host = replace(h.toolkit(cdi_specs=(h.CDI, path)), files={**h.files(), path: h._file(path, text)})
    found = verdict("ctk.cdi-fresh", host).outcome
    assert isinstance(found, Finding)
    assert found.summary == f"{path} is for another driver version"
    assert found.remedy.text.startswith("delete the pod that makes it")
    both = replace(host, files={**host.files, **h.files(cdi="kind: nvidia.com/gpu\nlibcuda.so.580.1")})
    found = verdict("ctk.cdi-fresh", both).outcome
    assert isinstance(found, Finding)
    assert found.summary == f"{h.CDI}, {path} is for another driver version"
    assert "setup --only toolkit" in found.remedy.text


@pytest.mark.parametrize(
    "host", [h.driver(stuck=(HUNG,)), replace(h.log(hung_tasks=2), driver=h.driver(stuck=(HUNG,)).driver)]
)
def test_a_program_that_waits_for_a_disk_does_not_hang(host: HostFacts) -> None:
    assert verdict("health.processes-stuck", host).outcome is None


@pytest.mark.parametrize(("stuck", "severity"), [((HUNG, DEAD), None), ((DEAD,), Severity.WARNING)])
def test_what_hangs_is_an_error_and_what_is_dead_a_warning(stuck: Any, severity: Severity | None) -> None:
    host = replace(h.log(hung_tasks=2, hung_in_driver=1), driver=h.driver(stuck=stuck).driver)
    outcome = verdict("health.processes-stuck", host).outcome
    assert isinstance(outcome, Finding)
    assert outcome.severity is severity


@pytest.mark.parametrize(
    ("id", "host", "says"), [pytest.param(*r, id=f"{r[0]}: {r[2][:60]}") for r in (*policies.NOTES, *machine.NOTES)]
)
def test_a_check_that_passes_says_what_it_found(id: str, host: HostFacts, says: str) -> None:
    result = verdict(id, host)
    assert (result.outcome, bool(result.evidence)) == (None, bool(says))
    assert says in result.evidence


@pytest.mark.parametrize("id", INFORMATIVE)
def test_what_only_informs_has_no_remedy_but_an_upgrade(id: str) -> None:
    doc = explain(id)
    assert doc is not None
    assert doc.broken.startswith("Informative: ")
    assert doc.remedy.action in (RepairAction.NONE, RepairAction.UPGRADE)


def test_a_profile_that_is_named_decides_what_is_asked_of_the_cpus() -> None:
    saving = h.system(governors={"powersave": 8})
    named = {name: run_all(saving, None, load_catalog(), None, name) for name in ("auto", "hgx", "docker")}
    found = {name: isinstance(r.results["os.cpu-governor"].outcome, Finding) for name, r in named.items()}
    assert found == {"auto": True, "hgx": True, "docker": False}, "the healthy host has NVSwitches"


def test_a_helper_that_others_may_write_is_an_error() -> None:
    found = [verdict(id, host).found for id, host, _ in policies.FAULTS if id == "sec.modprobe-suid"]
    assert found == [Severity.ERROR] * 3 + [Severity.WARNING]


def test_nothing_is_hidden_from_a_login_that_sees_the_gpus() -> None:
    assert verdict("user.smi-hidden", h.host(root=False)).outcome is None


@pytest.mark.parametrize("id", IDS)
def test_no_check_passes_where_nothing_is_known(id: str) -> None:
    assert isinstance(verdict(id, BARE, None).outcome, NotApplicable)


NOT_APPLICABLE: tuple[tuple[str, HostFacts, Spec | None, str], ...] = (
    *((id, host, WANT, reason) for id, host, reason in gpu_faults.NOT_APPLICABLE),
    *((id, host, WANT, reason) for id, host, reason in (*machine.NO_VERDICT, *policies.NO_VERDICT, *starts.NO_VERDICT)),
    *((id, h.host(), None, "nothing is expected") for id in IDS if id.startswith("expect.")),
    *(
        (f"health.{name}", h.driver(smi=SmiFacts(9, "no driver")), WANT, "did not list the GPUs")
        for name in ("gpu-lost", "recovery-action", "reset-required", "power-readable", "readable")
    ),
    *(
        (f"health.{name}", h.driver(smi=SmiFacts(15, gpus=(LOST,))), WANT, "did not list")
        for name in ("recovery-action", "reset-required", "power-readable", "readable")
    ),
    ("health.recovery-action", h.smi(WELL), WANT, "575 and newer"),
    ("health.reset-required", h.smi(replace(RESET, recovery="Reboot")), WANT, "health.recovery-action"),
    (
        "health.gpu-lost",
        replace(h.smi(LOST), pci=(replace(h.GPU, config_head="ffffffff"),)),
        WANT,
        "pci.fallen-off-bus",
    ),
    *(
        (
            id,
            replace(h.log(xids=(LoggedXid(79, "0000:41:00"),)), unread={"kernel_log": "needs root"}),
            WANT,
            "needs root",
        )
        for id in (
            "health.xid-recent",
            "health.xid-extended",
            "health.sxid",
            "health.hang-detector",
            "health.mce",
            "pci.aer-errors",
            "drv.gsp-firmware",
        )
    ),
    *(
        (id, h.host(kernel_state=None), WANT, "counters were not read")
        for id in ("pci.aer-errors", "boot.crash-evidence", "drv.taint")
    ),
    ("health.nvlink-rxdetect", h.host(kernel_state=None), WANT, "an older gpunode"),
    ("drv.taint", h.kernel_state(taint=None), WANT, "counters were not read"),
    ("boot.crash-evidence", h.kernel_state(crashes=None), WANT, "could not be read"),
    ("pci.aer-errors", h.kernel_state(aer={}), WANT, "no PCIe errors of GPUs"),
    ("health.sxid", h.host(pci=(h.GPU,)), WANT, "no NVSwitch"),
    ("drv.gsp-policy", h.driver(loaded_flavour="proprietary"), WANT, "not the open ones"),
    ("drv.gsp-policy", h.driver(params={}), WANT, "does not show EnableGpuFirmware"),
    ("health.hang-detector", h.driver(smi=SmiFacts(124)), WANT, "user.smi-works"),
    ("health.processes-stuck", h.driver(stuck=None), WANT, "an older gpunode"),
    ("health.processes-stuck", replace(h.driver(stuck=(HUNG,)), root=False), WANT, "only root"),
    ("health.processes-stuck", h.host(unread={"stuck": "not known"}), WANT, "stuck was not read: not known"),
    (
        "health.processes-stuck",
        replace(h.driver(stuck=(HUNG,)), unread={"kernel_log": "gone"}),
        WANT,
        "whether it hangs",
    ),
    ("ctk.cli-info", h.toolkit(cli=None), WANT, "an older gpunode"),
    ("ctk.cli-info", replace(h.toolkit(cli=None), unread={"cli_info": "smi hangs"}), WANT, "was not asked: smi hangs"),
    ("ctk.cli-info", h.toolkit(cli=CliInfo(127)), WANT, "libnvidia-container-tools"),
    ("ctk.cli-info", h.toolkit(cli=CliInfo(0)), WANT, "names no version"),
    ("ctk.cli-info", h.toolkit(version=None), WANT, "ctk.installed"),
    ("ctk.cdi-devices", h.smi(LOST), WANT, "health.gpu-lost"),
    ("drv.compiler-match", h.kernel(compiler=None), WANT, "which gcc built"),
    ("drv.compiler-match", h.kernel(trees=(replace(h.TREE, nvidia_module=None),)), WANT, "no package of gcc"),
    ("dev.selinux", h.host(security=SecurityFacts()), WANT, "is not known"),
    ("dev.selinux", h.enforcing(), WANT, "in auditd's log"),
    (
        "dev.selinux",
        h.enforcing(AVC.format("read", "name", "a").replace("modprobe", "nvidia")),
        WANT,
        "in auditd's log",
    ),
    ("drv.excluded-gpus", h.driver(params={}), WANT, "does not show ExcludedGpus"),
    ("drv.flavour", h.driver(installed_flavour=None), WANT, "is not known"),
    ("drv.vgpu", h.READY, WANT, "no GPU here is a vGPU"),
    ("drv.vgpu", h.licensed(None), WANT, "no licence"),
    ("drv.vgpu", h.licensed("Unlicensed (Unrestricted)"), WANT, "no licence yet, and is not slowed down"),
    ("dev.caps", h.READY, WANT, "no GPU has MIG instances"),
    ("dev.container", h.READY, WANT, "not a container"),
    ("dev.nodes", h.host(platform="container", devices=()), WANT, "the machine around it"),
    (
        "user.smi-works",
        h.driver(smi=SmiFacts(15, NO_HANDLE, gpus=(LOST,))),
        WANT,
        "health.gpu-lost",
    ),
    ("boot.initramfs", h.kernel(dracut=None), WANT, "dracut does not build"),
    ("boot.initramfs", dracut(newer=frozenset({"configuration"})), WANT, "not looked into"),
    ("drv.dkms-next", h.kernel(trees=(replace(h.TREE, bootable=False),)), WANT, "does not come from a package"),
    ("drv.headers-meta", h.host(packages=h.packages(linux__image__amd64="")), WANT, "no kernel meta package"),
    *(
        (
            id,
            replace(
                h.driver(dkms=(FS_BUILT, DkmsLine("zfs", "2.2.2", h.KERNEL, "installed"))),
                packages=h.packages(nvidia__kernel__open__dkms=""),
            ),
            WANT,
            "DKMS does not build the driver",
        )
        for id in ("drv.dkms-running", "drv.headers-running", "drv.headers-meta", "os.kernel-supported")
    ),
    ("rt.engine-eol", h.containerd(version="9.9.9"), WANT, "until when"),
    ("rt.runc-version", h.containerd(runc_version=None), WANT, "version of its runc is not known"),
    ("sec.docker-socket", h.docker(socket_mode=None), WANT, "was read"),
    ("sec.docker-socket", h.docker(socket_mode=0o666, user="ann"), WANT, "was read"),
    ("sec.driver-bulletin", h.driver(loaded="525.147.05"), WANT, "no security bulletin that gpunode knows"),
    ("rt.docker-gpus", h.host(toolkit=replace(h.TOOLKIT, hook_path=None)), WANT, "runtime-hook is not installed"),
    ("rt.docker-gpus", h.docker(started_at=None), WANT, "does not say when dockerd started"),
    ("rt.effective-default", h.host(), Spec(runtime=RuntimeSpec(default=False)), "RuntimeClass"),
    ("rt.containerd-live", h.containerd(effective_source="config dump (weaker)"), WANT, "not the daemon"),
    ("rt.present", replace(h.docker(active=False), init="chroot"), None, "is being built"),
    ("rt.cri-disabled", h.host(kubernetes=KubernetesFacts()), WANT, "no kubelet"),
    (
        "rt.cri-disabled",
        replace(h.READY, runtimes=(h.CONTAINERD_ENGINE, replace(h.CONTAINERD_ENGINE, name="k3s", embedded_in="1.34"))),
        WANT,
        "the containerd of k3s",
    ),
    (
        "rt.cri-disabled",
        replace(h.READY, runtimes=(h.CONTAINERD_ENGINE, replace(h.CONTAINERD_ENGINE, name="crio"))),
        WANT,
        "another engine's",
    ),
    ("user.smi-works", replace(h.driver(smi=None), unread={"smi": "a GPU is suspended"}), WANT, "a GPU is suspended"),
    ("drv.rm-init", h.host(unread={"kernel_log": "needs root"}), WANT, "needs root"),
    ("pci.expected-count", h.host(pci=(h.GPU,)), None, "expect.gpus"),
    ("pci.expected-count", h.host(virtualization="kvm"), None, "expect.gpus"),
    *(
        (id, h.gpu(device=device, driver=None), WANT, f"10de:{device} at 0000:41:00.0 is not in the catalog")
        for id in ("pci.device-support", "drv.flavour-vs-arch", "drv.branch-vs-arch")
        for device in ("ffff", "0abc")
    ),
    ("drv.module-loaded", h.gpu(driver="vfio-pci"), WANT, "vfio-pci"),
    ("ctk.installed", NO_ENGINE, WANT, "no container engine"),
    ("boot.module-signer", h.host(security=SecurityFacts()), WANT, "Secure Boot"),
    (
        "boot.module-signer",
        replace(h.driver(loaded=None, dkms=(FS_BUILT,)), security=SecurityFacts(True, mok_enrolled=False)),
        WANT,
        "nothing shows whether the kernel knows the key of 'DKMS key'",
    ),
    ("boot.module-signer", h.driver(loaded=None), WANT, "nothing shows whether the kernel knows the key of 'DKMS key'"),
    (
        "boot.module-signer",
        replace(h.driver(loaded=None), unread={"kernel_log": "needs root"}),
        WANT,
        "'DKMS key': kernel_log was not read: needs root",
    ),
)


@pytest.mark.parametrize(
    ("id", "host", "spec", "reason"), NOT_APPLICABLE, ids=[f"{r[0]}: {r[3]}" for r in NOT_APPLICABLE]
)
def test_a_missing_fact_is_reported_and_never_a_pass(id: str, host: HostFacts, spec: Spec | None, reason: str) -> None:
    outcome = verdict(id, host, spec).outcome
    assert isinstance(outcome, NotApplicable)
    assert reason in outcome.reason


def test_a_container_that_was_given_its_hosts_gpus_passes() -> None:
    assert verdict("dev.container", h.host(platform="container")).outcome is None


@pytest.mark.parametrize("id", ["pci.device-support", "drv.flavour-vs-arch", "drv.branch-vs-arch"])
def test_a_driver_that_is_bound_to_an_unknown_gpu_fits_it(id: str) -> None:
    assert verdict(id, h.gpu(device="ffff"), WANT).outcome is None


def with_handler(name: str) -> HostFacts:
    """The healthy host whose engines call NVIDIA's runtime `name`."""
    engines = tuple(
        replace(e, effective_default=name, handlers=(name, "runc"), systemd_cgroup={name: True, "runc": True})
        for e in h.READY.runtimes
    )
    texts = {"docker": h.DAEMON_JSON, "containerd": h.CONTAINERD}
    renamed = {
        key: text.replace('"nvidia"', f'"{name}"').replace(".nvidia]", f".{name}]") for key, text in texts.items()
    }
    return h.host(runtimes=engines, files=h.files(**renamed))


OF_ENGINES = [id for id in IDS if id.startswith("rt.")]


@pytest.mark.parametrize("id", OF_ENGINES)
def test_the_handler_is_called_what_the_spec_calls_it(id: str) -> None:
    assert verdict(id, with_handler("gpu"), replace(WANT, runtime=RuntimeSpec(cdi=True, handler="gpu"))).outcome is None


@pytest.mark.parametrize("id", ["containerd-file", "containerd-live", "docker-file", "docker-live"])
@pytest.mark.parametrize(("there", "wanted"), [("nvidia", "gpu"), ("gpu", "nvidia")])
def test_a_handler_of_another_name_is_not_the_wanted_one(id: str, there: str, wanted: str) -> None:
    spec = replace(WANT, runtime=RuntimeSpec(cdi=True, handler=wanted))
    outcome = verdict(f"rt.{id}", with_handler(there), spec).outcome
    assert isinstance(outcome, Finding)
    assert wanted in outcome.summary + outcome.evidence


def test_a_host_without_gpus_and_without_expectation_has_nothing_to_fail() -> None:
    report = run_all(NO_GPU, None, load_catalog())
    assert not report.failures
    assert not report.warnings
    assert isinstance(report.results["pci.gpu-present"].outcome, NotApplicable)


NO_MODULE: tuple[tuple[str, HostFacts, str, str], ...] = (
    ("packages, after a kernel update", replace(
        h.driver(loaded=None, installed=None, dkms=(DkmsLine("nvidia", h.V, "6.1.0-49-amd64", "installed"),)),
        kernel=replace(h.READY.kernel, trees=(
            replace(h.TREE, release="6.1.0-49-amd64"), replace(h.TREE, nvidia_module=None)))),
     f"driver {h.V} is installed, and no module of it can be loaded by kernel {h.KERNEL}", "package nvidia-open"),
    ("a .run installer, after a kernel update", replace(
        h.driver(loaded=None, installed=None, dkms=(), runfile=True), packages=PackageFacts("apt"),
        kernel=replace(h.READY.kernel, trees=(replace(h.TREE, nvidia_module=None),))),
     "a driver is installed", "/usr/bin/nvidia-uninstall is there"),
    ("DKMS alone, whose build failed", replace(
        h.driver(loaded=None, installed=None, dkms=(DkmsLine("nvidia", h.V, None, "added"),)),
        packages=PackageFacts("apt"), kernel=replace(h.READY.kernel, trees=(replace(h.TREE, nvidia_module=None),))),
     "a driver is installed", f"dkms status: nvidia/{h.V}, no kernel: added"),
    ("a module of another kernel alone", replace(
        h.driver(loaded=None, installed=None, dkms=()), packages=PackageFacts("apt"),
        kernel=replace(h.READY.kernel, trees=(
            replace(h.TREE, release="6.1.0-49-amd64"), replace(h.TREE, nvidia_module=None)))),
     "a driver is installed", "/lib/modules/6.1.0-49-amd64 holds updates/dkms/nvidia.ko"),
)  # fmt: skip


@pytest.mark.parametrize(("host", "says", "quoted"), [pytest.param(*row[1:], id=row[0]) for row in NO_MODULE])
def test_a_driver_without_a_module_for_this_kernel_is_not_called_absent(
    host: HostFacts, says: str, quoted: str
) -> None:
    results = run_all(host, WANT, load_catalog()).results
    found = results["drv.module-loaded"].outcome
    assert isinstance(found, Finding)
    assert says in found.summary
    assert quoted in found.evidence
    # What looks at the kernels and builds is not silenced with the reason that there is no driver.
    assert isinstance(results["drv.dkms-next"].outcome, Finding)


def test_what_the_plan_keeps_is_installed_for_check_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (EXAMPLES / "debian12-ready" / "facts.txt").read_text()
    lines = r"^\|(nvidia(_modeset|_uvm)?( 595.*)?|/lib/modules/.*|(filename|version|license|signer): .*)\n"
    updated = re.sub(lines, "", text, flags=re.M).replace("@ modinfo rc=0", "@ modinfo rc=1")
    updated = updated.replace("|nvidia/595.91.07, 6.18.44-lab,", "|nvidia/595.91.07, 6.18.40-lab,")
    (tmp_path / "facts.txt").write_text(updated)
    main(["plan", "--explain", "--recorded", str(tmp_path)])
    assert "it is installed and it drives all GPUs" in " ".join(capsys.readouterr().out.split())
    assert main(["check", "-v", "--recorded", str(tmp_path)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "driver 595.91.07 is installed, and no module" in shown
    assert "no NVIDIA driver" not in shown


BUILD_HOST = PackageFacts("apt", {"libnvidia-compute-580": PackageVersion("580.95.05-0ubuntu1"),
                                  "nvidia-driver-580": PackageVersion("580.95.05-0ubuntu1", "rc")})  # fmt: skip
NO_GPU = HostFacts("cpu01", "cpu01", OsFacts("debian", "12"), KernelFacts("6.1.0-50-amd64"), root=True)
HAS_DRIVER = PackageFacts("apt", {"nvidia-open": PackageVersion(f"{h.V}-1")})
GPU_NODES: tuple[tuple[str, HostFacts, Spec | None, str], ...] = (
    ("all of it", h.host(pci=()), None, f"the nvidia module {h.V} is loaded"),
    ("only NVSwitches are left", h.host(pci=h.SWITCHES), None, f"the nvidia module {h.V} is loaded"),
    ("a module", replace(NO_GPU, driver=DriverFacts(installed=h.V)), None, f"driver {h.V} is installed for kernel 6.1"),
    ("a driver's package", replace(NO_GPU, packages=HAS_DRIVER), None, f"package nvidia-open {h.V}-1 is installed"),
    ("DKMS", replace(NO_GPU, driver=DriverFacts(dkms=(DkmsLine("nvidia", h.V, None, "added"),))), None, "dkms status"),
    ("a .run installer", replace(NO_GPU, driver=DriverFacts(runfile=True)), None, "/usr/bin/nvidia-uninstall"),
    ("a driver container", replace(NO_GPU, driver=DriverFacts(container=True)), None, "/run/nvidia/driver"),
    ("the toolkit", replace(NO_GPU, toolkit=h.TOOLKIT), None, "NVIDIA Container Toolkit 1.20.0"),
    ("a handler", replace(NO_GPU, runtimes=(h.DOCKER_ENGINE,)), None, "docker has the handler nvidia"),
    (
        "gpunode's journal",
        replace(NO_GPU, journal=JournalFacts(defaults={"docker": "runc"})),
        None,
        "configured docker",
    ),
    ("a spec with a branch", NO_GPU, Spec(driver=DriverRequest.parse("580")), "the spec asks for driver 580"),
    ("a spec with MIG", NO_GPU, Spec(mig=(MigLayout.parse("all=1g.10gb:7"),)), "MIG all=1g.10gb:7"),
)


@pytest.mark.parametrize(("host", "spec", "quoted"), [pytest.param(*row[1:], id=row[0]) for row in GPU_NODES])
def test_a_node_for_gpus_that_has_none_fails_and_says_what_makes_it_one(
    host: HostFacts, spec: Spec | None, quoted: str
) -> None:
    report = run_all(host, spec, load_catalog())
    found = report.results["pci.gpu-present"].outcome
    assert isinstance(found, Finding)
    assert quoted in found.evidence
    assert "pci.gpu-present" in [result.id for result in report.failures]


NO_GPU_NODES: tuple[tuple[str, HostFacts, Spec | None, str], ...] = (
    ("nothing of NVIDIA's", NO_GPU, None, "not a GPU node"),
    ("the spec's defaults", NO_GPU, Spec(), "not a GPU node"),
    ("libcuda of a build host, and what a removed driver left", replace(NO_GPU, packages=BUILD_HOST), Spec(), "not a"),
    ("packages that an undo removed", replace(NO_GPU, journal=JournalFacts(packages=frozenset({"nvidia-open"}))),
     None, "not a GPU node"),
    ("its spec expects none", h.host(pci=()), Spec(expect=Expectation(gpus=0)), "expect.gpus is 0"),
    ("an image", h.host(pci=(), init="chroot"), None, "an image that is being built"),
    ("WSL", h.host(platform="wsl", pci=()), None, "/dev/dxg"),
    ("Jetson", h.host(platform="l4t", pci=()), None, "part of its processor"),
)  # fmt: skip


@pytest.mark.parametrize(("host", "spec", "reason"), [pytest.param(*row[1:], id=row[0]) for row in NO_GPU_NODES])
def test_a_host_that_need_not_have_a_gpu_on_its_bus_does_not_fail(
    host: HostFacts, spec: Spec | None, reason: str
) -> None:
    report = run_all(host, spec, load_catalog())
    outcome = report.results["pci.gpu-present"].outcome
    assert isinstance(outcome, NotApplicable)
    assert reason in outcome.reason
    assert "pci.expected-count" not in [result.id for result in report.failures]


@pytest.mark.parametrize(("name", "lost", "exits"), [("debian12-ready", True, 1), ("debian12-no-gpu", False, 0)])
def test_check_tells_a_node_that_lost_its_gpus_from_one_that_never_had_any(
    name: str, lost: bool, exits: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / name / "facts.txt").read_text()
    without, rows = re.subn(r"^\|[0-9a-f:.]+\|0x10de\|.*\n", "", text, flags=re.M)
    assert bool(rows) is lost
    (tmp_path / "facts.txt").write_text(without)
    assert main(["check", "--recorded", str(tmp_path)]) == exits
    assert ("pci.gpu-present" in capsys.readouterr().out) is lost


def test_a_default_of_nvidias_under_another_name_is_a_warning() -> None:
    other = "nvidia-container-runtime"
    host = h.containerd(effective_default=other, handlers=(other, "runc"))
    report = run_all(
        replace(host, files=h.files(containerd=h.CONTAINERD.replace("nvidia", other))), None, load_catalog()
    )
    ids = {"rt.containerd-file", "rt.containerd-live", "rt.effective-default"}
    assert ids <= {r.id for r in report.warnings}
    assert not ids & {r.id for r in report.failures}
    remedy = report.findings["rt.containerd-file"].remedy.text
    assert remedy.endswith(f"; the line `handler: {other}` in a file for --spec keeps the name that it has")


def test_runc_as_default_with_a_runtimeclass_is_a_warning_without_a_spec() -> None:
    report = run_all(replace(h.docker(effective_default="runc"), files=h.files(docker="{}")), None, load_catalog())
    assert "rt.effective-default" in [r.id for r in report.warnings]


@pytest.mark.parametrize(
    ("default", "cgroups", "says"),
    [
        ("nvidia", {"crun": False, "runc": True, "nvidia": False}, ""),
        ("nvidia", {"runc": True, "nvidia": False}, "set SystemdCgroup of nvidia to runc's"),
        ("crun", {"crun": False, "runc": True, "nvidia": False}, ""),
        ("crun", {"crun": True, "runc": False, "nvidia": False}, "copies crun's setting"),
    ],
    ids=["crun was the default", "nobody has it", "crun is the default", "crun is the default and has another"],
)
def test_the_cgroup_driver_is_held_against_the_runtime_it_was_copied_from(
    default: str, cgroups: dict[str, bool], says: str
) -> None:
    host = replace(h.containerd(effective_default=default, systemd_cgroup=cgroups), kubernetes=KubernetesFacts(False))
    outcome = verdict("rt.cgroup-driver", host).outcome
    assert isinstance(outcome, Finding) if says else outcome is None
    assert not isinstance(outcome, Finding) or says in outcome.remedy.text


def test_a_remedy_of_a_check_wants_the_same_as_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`setup --only runtime` alone would want the handler nvidia, which is there: nothing to do, and a loop."""
    spec = tmp_path / "spec.yaml"
    spec.write_text("handler: gpu\n")
    at = ["--recorded", str(EXAMPLES / "debian12-ready")]
    assert main(["check", *at, "--spec", str(spec), "--no-default", "--json"]) == 1
    checks = {one["id"]: one for one in json.loads(capsys.readouterr().out)["hosts"][0]["checks"]}
    command = checks["rt.docker-file"]["remedy"]["command"]
    assert command == ["gpunode", "setup", "--spec", str(spec), "--no-default", "--only", "runtime"]
    assert main(["plan", *at, *command[2:]]) == 0
    assert "runtimes.gpu" in capsys.readouterr().out


ALL_CGROUPFS, ALL_SYSTEMD = {"nvidia": False, "runc": False}, {"nvidia": True, "runc": True}


@pytest.mark.parametrize(
    ("containerd", "kubelet", "cgroups", "configured", "gate", "says"),
    [
        ("2.1.9", "1.31.4-1.1", ALL_SYSTEMD, "cgroupfs", None, "passes"),
        ("2.1.9", "1.31.4-1.1", ALL_CGROUPFS, "systemd", None, "takes cgroupfs from containerd"),
        ("2.1.9", "1.30.9-1.1", ALL_SYSTEMD, "cgroupfs", None, "the kubelet uses cgroupfs"),
        ("2.1.9", "1.28.9-1.1", ALL_SYSTEMD, "cgroupfs", True, "passes"),
        ("2.1.9", "1.33.7-1.1", ALL_SYSTEMD, "cgroupfs", False, "the kubelet uses cgroupfs"),
        ("1.7.27", "1.34.2-1.1", ALL_SYSTEMD, "cgroupfs", None, "the kubelet uses cgroupfs"),
        ("2.1.9", "", ALL_SYSTEMD, "cgroupfs", None, "its version is not known"),
        ("2.1.9", "", ALL_SYSTEMD, "systemd", None, "passes"),
    ],
    ids=[
        "the kubelet's word is ignored", "cgroupfs against the kubelet's word", "kubelet 1.30 has its own",
        "its gate is on early", "its gate is off", "containerd 1.7 is not asked", "a kubelet of unknown version",
        "both say systemd",
    ],
)  # fmt: skip
def test_a_kubelet_that_asks_containerd_is_not_held_to_its_own_cgroup_driver(
    containerd: str, kubelet: str, cgroups: dict[str, bool], configured: str, gate: bool | None, says: str
) -> None:
    gates = {} if gate is None else {"KubeletCgroupDriverFromCRI": Gate(gate, "--feature-gates")}
    host = replace(
        h.containerd(version=containerd, systemd_cgroup=cgroups),
        kubernetes=KubernetesFacts(True, configured, settings=KubeletSettings(gates=gates)),
        packages=PackageFacts("apt", {"kubelet": PackageVersion(kubelet)} if kubelet else {}),
    )
    result = verdict("rt.cgroup-driver", host)
    outcome = result.outcome
    heard = (
        outcome.summary
        if isinstance(outcome, Finding)
        else outcome.reason
        if isinstance(outcome, NotApplicable)
        else "passes"
    )
    assert says in heard
    if "takes cgroupfs" in says:
        assert isinstance(outcome, Finding)
        assert outcome.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("kubelet", "told", "docker", "says"),
    [
        ("1.20.2", None, True, "starts its pods with docker"),
        ("1.23.17", "docker", True, "starts its pods with docker"),
        ("1.23.17", "remote", True, "the kubelet uses systemd"),
        ("1.24.0", None, True, "the kubelet uses systemd"),
        ("1.20.2", None, False, "the kubelet uses systemd"),
    ],
)
def test_containerd_is_not_held_to_a_kubelet_whose_pods_are_dockers(
    kubelet: str, told: str | None, docker: bool, says: str
) -> None:
    host = h.containerd(version="1.6.20", systemd_cgroup=ALL_CGROUPFS)
    host = replace(
        host,
        kubernetes=KubernetesFacts(True, "systemd", settings=KubeletSettings(container_runtime=told)),
        packages=PackageFacts("apt", {"kubelet": PackageVersion(f"{kubelet}-00")}),
        runtimes=host.runtimes if docker else host.runtimes[1:],
    )
    outcome = verdict("rt.cgroup-driver", host).outcome
    assert isinstance(outcome, Finding | NotApplicable)
    assert says in (outcome.summary if isinstance(outcome, Finding) else outcome.reason)


def test_no_cgroups_is_right_where_it_was_asked_for_and_where_every_engine_is_a_users() -> None:
    faulty = h.host(files=h.files(ctk="[nvidia-container-cli]\nno-cgroups = true\n"))
    asked = replace(WANT, toolkit_config=ToolkitConfig(no_cgroups=True))
    assert verdict("ctk.config", faulty).outcome is not None
    assert verdict("ctk.config", faulty, asked).outcome is None
    rootless = replace(faulty, runtimes=tuple(replace(e, user="ann") for e in faulty.runtimes))
    assert verdict("ctk.config", rootless).outcome is None
    idle = replace(faulty.runtimes[-1], name="containerd", cri_error="the CRI plugin is switched off")
    assert verdict("ctk.config", replace(rootless, runtimes=(*rootless.runtimes, idle))).outcome is None
    mixed = replace(faulty, runtimes=(replace(faulty.runtimes[0], user="ann"), *faulty.runtimes[1:]))
    assert verdict("ctk.config", mixed).outcome is not None


@pytest.mark.parametrize(("installed", "action"), [(h.V, RepairAction.UPGRADE), ("595.99.01", RepairAction.REBOOT)])
def test_a_reboot_is_advised_only_where_it_loads_another_module(installed: str, action: RepairAction) -> None:
    newer = {so: (f"{h.LIB}/{so[:-2]}.595.99.01",) for so in LIBS}
    host = h.driver(libraries=newer, installed=installed, smi=SmiFacts(18, "Failed to initialize NVML"))
    for id in ("drv.running-vs-userspace", "user.smi-works"):
        found = verdict(id, host).outcome
        assert isinstance(found, Finding)
        assert found.remedy.action is action


def test_the_libcuda_of_forward_compatibility_is_of_another_version_by_design() -> None:
    own = LIBS["libcuda.so.1"]
    before = h.driver(libraries=LIBS | {"libcuda.so.1": ("/usr/local/cuda-13.3/compat/libcuda.so.610.57.04", *own)})
    assert verdict("drv.running-vs-userspace", before).outcome is None
    assert verdict("user.stale-libs", before).outcome is None
    left = "/usr/local/cuda-12.2/compat/libcuda.so.535.309.01"
    older = verdict("user.stale-libs", h.driver(libraries=LIBS | {"libcuda.so.1": (left, *own)})).outcome
    assert isinstance(older, Finding)
    assert left in older.remedy.text


def test_suses_package_of_the_open_module_is_one_of_the_driver() -> None:
    there = {
        "nvidia-open-driver-G07-signed-kmp-default": f"{h.V}_k6.4.0_150700.51-1",
        "nvidia-compute-G07": "595.99.01-1",
    }
    packages = PackageFacts("zypper", {name: PackageVersion(version) for name, version in there.items()})
    found = verdict("drv.package-consistency", h.host(packages=packages)).outcome
    assert isinstance(found, Finding)
    assert f"{h.V}: nvidia-open-driver-G07-signed-kmp-default" in found.evidence


def test_of_two_versions_in_rpms_database_the_older_is_the_one_to_remove() -> None:
    outcome = verdict(
        "drv.package-consistency", h.host(packages=replace(h.packages(), manager="dnf", doubled=TWICE))
    ).outcome
    assert isinstance(outcome, Finding)
    assert outcome.remedy.text.startswith("rpm -e nvidia-driver-cuda-580.178.04-1.el9 removes the older; then ")
    assert "vim" not in outcome.summary


def test_ids_are_ordered_and_every_check_explains_itself() -> None:
    assert list(IDS) == sorted(set(IDS))
    assert len(IDS) >= 40
    for doc in all_checks():
        assert all((doc.title, doc.broken, doc.reads, doc.remedy)), doc.id
        assert doc.severity in Severity
        assert explain(doc.id) == doc
    assert explain("no.such-check") is None
