"""Every check passes on a healthy host, finds its fault, and says why when it cannot give a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, explain, run_all
from gpunode.model.facts import (
    DkmsLine,
    DracutFacts,
    DriverFacts,
    FileFacts,
    HostFacts,
    InitramfsImage,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    PackageFacts,
    PackageVersion,
    SecurityFacts,
    ServiceFacts,
    SmiFacts,
    ToolkitFacts,
)
from gpunode.model.report import CheckResult, Finding, NotApplicable, Severity
from gpunode.model.spec import Expectation, RuntimeSpec, Spec, ToolkitConfig
from tests.checks import hosts as h

IDS = tuple(doc.id for doc in all_checks())
WANT = Spec(expect=Expectation(gpus=1), runtime=RuntimeSpec(cdi=True))
NO_ENGINE = h.host(runtimes=())
BARE = HostFacts("bare", "bare", OsFacts("debian", "12"), KernelFacts("6.1.0"), root=False)
OLD_BOX = replace(h.gpu(device="102d"), driver=h.READY.driver)  # K80
LEGACY = """[plugins."io.containerd.grpc.v1.cri".containerd.default_runtime]
  runtime_type = "io.containerd.runc.v2"
"""
FABRIC = "nvidia-fabricmanager.service"
LIBS = dict(h.READY.driver.libraries)


def verdict(id: str, host: HostFacts, spec: Spec | None = WANT) -> CheckResult:
    return run_all(host, spec, load_catalog()).results[id]


def dracut(**more: Any) -> HostFacts:
    """A host with this image of dracut's."""
    images = (InitramfsImage(h.KERNEL, "/boot/i", **more),)
    return h.kernel(dracut=DracutFacts(frozenset({"nouveau", "nvidia"}), frozenset(), images=images))


FAULTS: tuple[tuple[str, HostFacts, str], ...] = (
    ("boot.cmdline-blocks", h.kernel(cmdline="quiet modprobe.blacklist=foo,nvidia"), "modprobe.blacklist=foo,nvidia"),
    (
        "boot.initramfs", dracut(modules=frozenset({"nouveau"})), "lsinitrd /boot/i shows nouveau and no blacklist",
    ),
    (
        "boot.initramfs", dracut(modules=frozenset({"nvidia"}), newer=frozenset({"module"})), "on disk is newer",
    ),
    ("boot.module-signer", h.driver(loaded=None, signer=None), "modinfo -F signer"),
    ("boot.nouveau-blacklisted", h.kernel(blacklisted=frozenset()), "blacklist nouveau"),
    ("boot.nouveau-loaded", h.kernel(modules=frozenset({"nouveau"})), "/sys/module/nouveau"),
    ("boot.nouveau-loaded", h.kernel(modules=frozenset({"nova_core"})), "/sys/module/nova_core"),
    ("boot.pending-reboot", h.kernel(reboot_required="linux-base\n"), "linux-base"),
    ("ctk.cdi-duplicate", replace(h.toolkit(cdi_specs=(h.CDI, "/etc/cdi/nvidia.yaml")),
                                  files=h.files(cdi2="kind: nvidia.com/gpu")), "/etc/cdi/nvidia.yaml"),
    ("ctk.cdi-fresh", h.host(files=h.files(cdi="kind: nvidia.com/gpu\nlibcuda.so.580.1")), h.V),
    ("ctk.cdi-present", h.toolkit(cdi_devices=()), h.CDI),
    ("ctk.cdi-devices", h.host(files=h.files(cdi=f'kind: nvidia.com/gpu\ndevices:\n- name: "1"\n- name: "all"\n'
                                                 f"hostPath: libcuda.so.{h.V}")), "1 not here, 0 not in it"),
    ("ctk.cdi-readable", h.host(files=h.files(cdi="cdiVersion: 0.7.0\nkind: nvidia.com/gpu"), runtimes=(
        replace(h.DOCKER_ENGINE, version="26.0.0", cdi=True),)), "CDI version 0.7.0"),
    ("ctk.cdi-refresh-unit", h.host(services={"nvidia-cdi-refresh.path": ServiceFacts("loaded", enabled="disabled")}),
     "disabled"),
    ("ctk.config", h.host(files=h.files(ctk="\nno-cgroups = true\n")), f"{h.CTK}:2 no-cgroups = true"),
    ("ctk.config", h.host(files=h.files(ctk='ldconfig = "/sbin/ldconfig"')), f"{h.CTK}:1 ldconfig"),
    ("ctk.config", h.host(files=h.files(ctk='mode = "fast"')), "mode = fast"),
    ("ctk.config", h.host(files=h.files(ctk='[nvidia-container-cli]\nno-cgroups =\n')), f"{h.CTK}:2:13"),
    ("ctk.installed", h.toolkit(version=None), "nvidia-ctk --version"),
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
    ("dev.uvm", h.node("/dev/nvidia-uvm", major=510), "510"),
    ("dev.uvm", h.host(devices=h.READY.devices[:2]), "511"),
    ("drv.branch-eol", h.driver(loaded="550.163.01"), "550.163.01"),
    ("drv.fabric-manager", h.host(services={FABRIC: ServiceFacts("loaded", "failed", "failed", "enabled")}),
     f"{FABRIC}: ActiveState failed"),
    ("drv.fabric-manager", h.host(services={FABRIC: ServiceFacts("loaded", "inactive", "dead", "disabled")}),
     "ActiveState inactive, SubState dead, disabled"),
    ("drv.fabric-manager", h.host(services={FABRIC: ServiceFacts()}), "is not found"),
    ("drv.branch-vs-arch", h.driver(loaded="470.256.02"), "470.256.02"),
    ("drv.branch-vs-arch", h.gpu(device="1db6"), "Volta"),
    ("drv.branch-vs-arch", replace(h.gpu(device="3182"), driver=h.driver(loaded="570.148.08").driver), "from 580 on"),
    ("drv.branch-vs-arch", replace(h.gpu(device="0ff2"), driver=h.driver(loaded="470.256.02").driver), "to 367"),
    ("drv.dkms-next", h.kernel(trees=(h.TREE, replace(h.TREE, release="6.1.0-51-amd64", nvidia_module=None)),
                               next_boot="6.1.0-51-amd64"), "/boot/vmlinuz-6.1.0-51-amd64"),
    ("drv.dkms-next", h.kernel(trees=(h.TREE, replace(h.TREE, release="6.1.0-49", nvidia_module=None))), "6.1.0-49"),
    ("drv.dkms-running", replace(h.kernel(trees=(replace(h.TREE, nvidia_module=None),)),
                                 driver=replace(h.READY.driver, dkms=(DkmsLine("nvidia", h.V, None, "added"),))),
     "added"),
    ("drv.flavour-vs-arch", h.gpu(device="1db6"), "Volta"),
    ("drv.headers-meta", h.host(packages=h.packages(linux__headers__amd64="")), "linux-image-amd64"),
    ("drv.headers-running", h.kernel(trees=(replace(h.TREE, headers=False),)), f"/lib/modules/{h.KERNEL}/build"),
    ("drv.install-method", h.driver(runfile=True), "/usr/bin/nvidia-uninstall"),
    ("drv.modprobe-options", h.host(files=h.files(modprobe="options nvidia NVreg_DeviceFileMode=0660")), "0660"),
    ("drv.module-loaded", h.driver(loaded=None), "/sys/module/nvidia is absent"),
    ("drv.module-loaded", h.driver(loaded=None, installed=None), "modinfo"),
    ("drv.module-loaded", h.driver(initstate="coming"), "coming"),
    ("drv.package-consistency", h.host(packages=h.packages(nvidia__open="580.178.04")), "580.178.04: nvidia-open"),
    ("drv.package-consistency", h.host(packages=PackageFacts("apt", {"nvidia-open": PackageVersion(h.V, "iF")})),
     "'iF'"),
    ("drv.package-consistency", h.host(packages=PackageFacts("apt", {"dkms": PackageVersion("3.0", "ri")})), "'ri'"),
    ("drv.rm-init", h.driver(kernel_log=("NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x26:0xffff:1482)",)), "0x26"),
    ("drv.running-vs-installed", h.driver(installed="595.99.01"), "595.99.01"),
    ("drv.running-vs-userspace", h.driver(libraries=LIBS | {"libcuda.so.1": ("/usr/lib/libcuda.so.580.178.04",)}),
     "libcuda.so.580.178.04"),
    ("drv.uvm-loaded", replace(h.kernel(modules=frozenset({"nvidia"})), uvm_major=None), "/sys/module/nvidia_uvm"),
    ("drv.version-running", h.driver(loaded="weird"), "'weird'"),
    ("pci.bar1-size", h.gpu(bar1_bytes=0), "resource line 2"),
    ("pci.count-vs-driver", h.driver(gpus=()), h.GPU.address),
    ("pci.count-vs-driver", h.driver(smi=SmiFacts(0)), "nvidia-smi -q -x"),
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
    ("rt.containerd-file", h.host(files=h.files(containerd="version = 2\n")), "/etc/containerd/config.toml"),
    ("rt.containerd-file", h.host(files=h.files(containerd=h.CONTAINERD + LEGACY)),
     "config.toml:5"),
    ("rt.containerd-live", h.containerd(handlers=("runc",)), "handlers runc"),
    ("rt.cri-disabled", replace(h.containerd(cri_error="unknown service runtime.v1.RuntimeService"),
                                files=h.files(containerd='disabled_plugins = ["cri"]')),
     "config.toml:1 disabled_plugins"),
    ("rt.cri-disabled", h.containerd(cri_error="unknown service"), "unknown service"),
    ("rt.daemon-restart-safe", h.docker(live_restore=False, containers_running=3), "ContainersRunning 3"),
    ("rt.docker-file", h.host(files=h.files(docker="{,}")), "daemon.json:1:2"),
    ("rt.docker-file", h.host(files=h.files(docker="[" * 100_000)), "daemon.json"),
    ("rt.docker-file", h.host(files=h.files(docker=None)), "is absent"),
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
    ("sec.ctk-cve", h.toolkit(version="1.17.4"), "1.17.4"),
    ("user.libcuda", h.driver(libraries={}), "libcuda.so.1"),
    ("user.libnvml", h.driver(libraries={}), "libnvidia-ml.so.1"),
    ("user.smi-hidden", replace(h.driver(smi=SmiFacts(6, "No devices were found")), root=False), h.GPU.address),
    ("user.smi-works", h.driver(smi=SmiFacts(18, "Failed to initialize NVML")), "exit 18: Failed to initialize NVML"),
    ("user.smi-works", h.driver(smi=SmiFacts(124)), "exit 124"),
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


@pytest.mark.parametrize("id", IDS)
def test_every_check_has_a_fault_that_it_finds(id: str) -> None:
    assert any(row[0] == id for row in FAULTS)


@pytest.mark.parametrize("id", [i for i in IDS if i != "user.smi-hidden"])
def test_every_check_passes_on_the_healthy_host(id: str) -> None:
    assert verdict(id, h.READY).outcome is None


def test_nothing_is_hidden_from_a_login_that_sees_the_gpus() -> None:
    assert verdict("user.smi-hidden", h.host(root=False)).outcome is None


@pytest.mark.parametrize("id", IDS)
def test_no_check_passes_where_nothing_is_known(id: str) -> None:
    assert isinstance(verdict(id, BARE, None).outcome, NotApplicable)


NOT_APPLICABLE: tuple[tuple[str, HostFacts, Spec | None, str], ...] = (
    ("boot.initramfs", h.kernel(dracut=None), WANT, "dracut does not build"),
    ("boot.initramfs", dracut(newer=frozenset({"configuration"})), WANT, "not looked into"),
    ("drv.dkms-next", h.kernel(trees=(replace(h.TREE, bootable=False),)), WANT, "does not come from a package"),
    ("drv.headers-meta", h.host(packages=h.packages(linux__image__amd64="")), WANT, "no kernel meta package"),
    ("rt.docker-gpus", h.host(toolkit=replace(h.TOOLKIT, hook_path=None)), WANT, "runtime-hook is not installed"),
    ("rt.docker-gpus", h.docker(started_at=None), WANT, "does not say when dockerd started"),
    ("rt.effective-default", h.host(), Spec(runtime=RuntimeSpec(default=False)), "RuntimeClass"),
    ("rt.containerd-live", h.containerd(effective_source="config dump (weaker)"), WANT, "not the daemon"),
    ("rt.cri-disabled", h.host(kubernetes=KubernetesFacts()), WANT, "no kubelet"),
    ("user.smi-works", replace(h.driver(smi=None), unread={"smi": "a GPU is suspended"}), WANT, "a GPU is suspended"),
    ("drv.rm-init", h.host(unread={"kernel_log": "needs root"}), WANT, "needs root"),
    ("pci.expected-count", h.host(), None, "expect.gpus"),
    ("drv.module-loaded", h.gpu(driver="vfio-pci"), WANT, "vfio-pci"),
    ("drv.fabric-manager", h.host(pci=(h.GPU,), services={}), WANT, "no NVSwitch"),
    ("drv.fabric-manager", h.host(services={}), WANT, "was not read"),
    ("drv.fabric-manager", h.host(init="openrc"), WANT, "was not read"),
    ("ctk.installed", NO_ENGINE, WANT, "no container engine"),
    ("boot.module-signer", h.host(security=SecurityFacts()), WANT, "Secure Boot"),
)


@pytest.mark.parametrize(
    ("id", "host", "spec", "reason"), NOT_APPLICABLE, ids=[f"{r[0]}: {r[3]}" for r in NOT_APPLICABLE]
)
def test_a_missing_fact_is_reported_and_never_a_pass(id: str, host: HostFacts, spec: Spec | None, reason: str) -> None:
    outcome = verdict(id, host, spec).outcome
    assert isinstance(outcome, NotApplicable)
    assert reason in outcome.reason


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
    report = run_all(h.host(pci=(), driver=DriverFacts(), toolkit=ToolkitFacts()), None, load_catalog())
    assert not report.failures
    assert not report.warnings
    assert isinstance(report.results["pci.gpu-present"].outcome, NotApplicable)


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


def test_ids_are_ordered_and_every_check_explains_itself() -> None:
    assert list(IDS) == sorted(set(IDS))
    assert len(IDS) >= 40
    for doc in all_checks():
        assert all((doc.title, doc.broken, doc.reads, doc.remedy)), doc.id
        assert doc.severity in Severity
        assert explain(doc.id) == doc
    assert explain("no.such-check") is None
