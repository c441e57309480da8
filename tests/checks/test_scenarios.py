"""What goes wrong on GPU nodes, as people report it: the finding that stands first is the cause, and says what to do.

Each row is a host with one fault and all of its symptoms; the id is what somebody reads in a log or a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import run_all
from gpunode.checks.agreement import agreed
from gpunode.checks.causes import folded
from gpunode.cli.options.spec import texts_of_words
from gpunode.errors import ExitCode
from gpunode.model.dkms import DkmsLine
from gpunode.model.facts import FailedStep, HostFacts, JournalFacts, RuntimeFacts, SecurityFacts, ToolkitFacts
from gpunode.model.files import FileFacts, WrittenFile
from gpunode.model.plan import Plan
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, Severity
from gpunode.model.smi import SmiFacts
from gpunode.model.spec import Spec
from gpunode.planner.plan import make_plan
from gpunode.render.check_text import WORDS, check_text
from gpunode.render.remedy_text import remedy_text
from gpunode.render.short_text import whole_clauses
from gpunode.render.style import Style
from gpunode.render.verdict import NHC_BYTES, verdict
from gpunode.specfile import put_all
from tests.checks import hosts as h
from tests.checks import of_the_machine as machine
from tests.checks import test_checks, test_handlers, test_k8s, test_svc

NEWER = "595.99.01"
DEAD = SmiFacts(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver")
NONE_FOUND = SmiFacts(6, "No devices were found")
NO_MODULE: Mapping[str, object] = {"loaded": None, "installed": None, "initstate": None, "gpus": (), "smi": DEAD}
BROKEN_LINE = "NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x22:0x56:884)"
FELL = "NVRM: GPU 0000:41:00.0: GPU has fallen off the bus."
ADDED = (DkmsLine("nvidia", h.V, None, "added"),)
BARE_TREE = replace(h.TREE, nvidia_module=None)
NEW_LIBS = {so: (f"{h.LIB}/{so[:-2]}.{NEWER}",) for so in ("libcuda.so.1", "libnvidia-ml.so.1")}


def fault(id: str) -> HostFacts:
    """The first host in the tables of faults that is this check's."""
    rows = [(row[0], row[1]) for row in test_checks.FAULTS]
    rows += [(row[0], row[1]) for row in (*test_handlers.FAULTS, *test_svc.FAULTS, *test_k8s.FAULTS)]
    return next(host for other, host in rows if other == id)


def unloaded(host: HostFacts = h.READY, bound: str | None = None, **changes: object) -> HostFacts:
    """The module is not there, and all that shows it: no nodes, nothing bound, nvidia-smi fails."""
    gone = {**NO_MODULE, **changes}
    pci = tuple(replace(d, driver=bound) if d.device == h.GPU.device else d for d in host.pci)
    kernel = replace(host.kernel, modules=host.kernel.modules - {"nvidia", "nvidia_uvm"})
    driver = replace(host.driver, **gone)  # type: ignore[arg-type]
    return replace(host, pci=pci, driver=driver, devices=(), uvm_major=None, kernel=kernel)


def rival(name: str) -> HostFacts:
    host = unloaded(bound=name, installed=h.V)
    return replace(host, kernel=replace(host.kernel, modules=frozenset({name}), blacklisted=frozenset()))


def without_headers(*, meta: bool) -> HostFacts:
    host = unloaded(dkms=ADDED)
    trees = (replace(BARE_TREE, headers=False),)
    packages = h.packages() if meta else h.packages(linux__headers__amd64="")
    return replace(host, kernel=replace(host.kernel, trees=trees), packages=packages)


def misfit(device: str, flavour: Literal["open", "proprietary"], driver: str = h.V) -> HostFacts:
    """The GPU that the module does not start: not bound, not claimed."""
    pci = replace(h.GPU, device=device, driver=None)
    facts = replace(
        h.READY.driver, loaded=driver, installed=driver, loaded_flavour=flavour, installed_flavour=flavour, gpus=(),
        smi=NONE_FOUND, kernel_log=(BROKEN_LINE,),
        libraries={so: (f"{h.LIB}/{so[:-2]}.{driver}",) for so in NEW_LIBS},
    )  # fmt: skip
    cdi = h.files(cdi=f"kind: nvidia.com/gpu\nhostPath: libcuda.so.{driver}\n")
    return replace(h.READY, pci=(pci,), driver=facts, devices=(), services={}, files=cdi)


def only(engine: RuntimeFacts, **files: str) -> HostFacts:
    return replace(h.READY, runtimes=(engine,), files=h.files(**files))


NO_HANDLER = replace(h.CONTAINERD_ENGINE, handlers=("runc",), effective_default="runc", systemd_cgroup={"runc": True})
NO_SERVICE = "unknown service runtime.v1.RuntimeService"
NO_TOOLKIT = {name.replace("-", "__"): "" for name in h.PACKAGES if "container" in name}
NO_CRI = replace(
    NO_HANDLER, cri_error=NO_SERVICE, handlers=(), effective_default=None,
    effective_source="", systemd_cgroup={},
)  # fmt: skip
OFF_THE_BUS = replace(
    h.gpu(config_head="ffffffff"),
    driver=replace(h.READY.driver, kernel_log=(FELL, BROKEN_LINE), gpus=(), smi=SmiFacts(15, "GPU is lost")),
)


def on_a_node(host: HostFacts) -> HostFacts:
    """The same fault of a node of Kubernetes: the device plugin ends over and over, and the node offers no GPU."""
    pods = (replace(test_k8s.PLUGIN, restarts=7),)
    plugins = replace(
        test_k8s.WELL_PLUGINS, sockets={}, registered={}, processes=(), pods=pods, image=None, options=None
    )
    offers = {"nvidia.com/gpu": "0"}
    node = replace(test_k8s.WELL_NODE, capacity=offers, allocatable=offers)
    return replace(host, kubernetes=replace(test_k8s.WELL_KUBERNETES, device_plugins=plugins, node=node))


def not_ready(host: HostFacts) -> HostFacts:
    """Its kubelet does not come up either."""
    down = on_a_node(host)
    conditions = {"Ready": "False KubeletNotReady"}
    node = replace(test_k8s.WELL_NODE, conditions=conditions, capacity={"nvidia.com/gpu": "0"}, allocatable={})
    return replace(down, kubernetes=replace(down.kubernetes, running=False, node=node),
                   services={**host.services, "kubelet.service": test_k8s.FLAPS})  # fmt: skip


def k3s(text: str | None = None, /, **changes: object) -> HostFacts:
    """A node of k3s's, with this template of its containerd's configuration, and docker's containerd beside it."""
    directory = test_handlers.TEMPLATE.rpartition("/")[0]
    engine = replace(test_handlers.K3S, config_path=f"{directory}/config.toml", **changes)  # type: ignore[arg-type]
    template = {} if text is None else {test_handlers.TEMPLATE: FileFacts(test_handlers.TEMPLATE, text)}
    docker = (h.DOCKER_ENGINE, replace(h.CONTAINERD_ENGINE, effective_default=None, handlers=(), cri_error=NO_SERVICE))
    kubernetes = replace(test_k8s.WELL_KUBERNETES, distribution="k3s", device_plugins=None, node=None)
    return replace(h.READY, runtimes=(*docker, engine), files={**h.files(), **template}, kubernetes=kubernetes)


def bare_docker(**changes: object) -> HostFacts:
    """docker as its package brings it."""
    plain = replace(h.DOCKER_ENGINE, handlers=("runc",), effective_default="runc", **changes)  # type: ignore[arg-type]
    return replace(only(plain), files=h.files(docker=None), journal=JournalFacts())


def rewritten() -> HostFacts:
    """kubespray has written containerd's configuration anew: the device plugin waits for GPUs that it does not see."""
    path = "/etc/containerd/config.toml"
    ours = WrittenFile("0" * 64, "absent", "containerd.default", "20260521T151820Z-1.1")
    files = h.files(containerd="version = 2\n")
    return replace(test_k8s.BLIND, runtimes=(NO_HANDLER,), files=files, journal=JournalFacts(files={path: ours}))


def failed_download(step: str = "driver.install", host: HostFacts | None = None) -> HostFacts:
    """What a setup leaves that failed for a mirror: its journal. The machine is as it was."""
    error = (
        "download 9 packages ended with code 100: E: Failed to fetch https://developer.download.nvidia.com/x.deb  "
        "File has unexpected size (1797735 != 1778230). Mirror sync in progress? [IP: 152.199.39.144 443] "
        "· E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?"
    )
    failed = FailedStep(step, "20261121T151820Z-6283.1", error)
    return replace(host or bare_of_driver(), journal=JournalFacts(failed=failed))


def bare_of_driver() -> HostFacts:
    """No package of a driver, no module, no library."""
    gone = {
        name.replace("-", "__"): "" for name in h.PACKAGES if name.startswith("nvidia-") and "container" not in name
    }
    host = unloaded(dkms=(), libraries={}, smi=SmiFacts(127), signer=None, installed_flavour=None, loaded_flavour=None)
    toolkit = replace(h.TOOLKIT, cdi_specs=(), cdi_devices=(), cli=None)
    return replace(host, kernel=replace(host.kernel, trees=(BARE_TREE,)), packages=h.packages(**gone), services={},
                   files=h.files(cdi=None), toolkit=toolkit)  # fmt: skip


# The symptom, the host, the finding that comes first. The numbers are those of the field's list of reported faults.
SCENARIOS: tuple[tuple[str, HostFacts, str], ...] = (
    ("1 Failed to initialize NVML: Unknown Error", replace(h.node("/dev/nvidia0", char_link=False),
     files=h.files(ctk='nvidia-container-runtime.mode = "legacy"\n')), "dev.char-symlinks"),
    ("2 Driver/library version mismatch", h.driver(installed=NEWER, libraries=NEW_LIBS, smi=SmiFacts(18, "mismatch")),
     "drv.running-vs-installed"),
    ("3 unknown service runtime.v1.RuntimeService", only(NO_CRI, containerd='disabled_plugins = ["cri"]\n'),
     "rt.cri-disabled"),
    ("4 pods killed every few minutes", fault("rt.cgroup-driver"), "rt.cgroup-driver"),
    ("5 drop-in config version 4 higher than root config version 2", fault("rt.dropin-version"), "rt.dropin-version"),
    ("6 unsupported config version: 3", h.toolkit(version="1.17.3"), "sec.ctk-cve"),
    ("7 container.Runtime.Name must be set", fault("rt.runtime-type"), "rt.runtime-type"),
    ("8 no runtime for nvidia is configured", only(NO_HANDLER, containerd="version = 2\n"), "rt.containerd-file"),
    ("9 the runtime config vanishes later", fault("rt.config-drift"), "rt.config-drift"),
    ("10 k3s does not come back after a reboot", k3s(test_handlers.WHOLE, active=False, handlers=(),
     effective_default=None), "rt.k3s-template"),
    ("11 edits applied to the wrong daemon", k3s(handlers=("runc",), effective_default="runc"), "rt.effective-default"),
    ("12 could not select device driver: no toolkit", replace(
        bare_docker(), toolkit=ToolkitFacts(), packages=h.packages(**NO_TOOLKIT)), "ctk.installed"),
    ("12 could not select device driver: docker was not restarted", only(replace(
        h.DOCKER_ENGINE, handlers=("runc",), effective_default="runc")), "rt.docker-live"),
    ("12 could not select device driver: the toolkit is younger than dockerd", fault("rt.docker-gpus"),
     "rt.docker-gpus"),
    ("12 could not select device driver: docker from a snap", bare_docker(
        snap=True, unit="snap.docker.dockerd.service", config_path="/var/snap/docker/current/config/daemon.json"),
     "rt.snap-docker"),
    ("13 nouveau is currently in use", rival("nouveau"), "boot.nouveau-loaded"),
    ("14 GPU is already bound to NovaCore", rival("nova_core"), "boot.nouveau-loaded"),
    ("15 Key was rejected by service", replace(unloaded(installed=h.V, signer=None), security=SecurityFacts(True)),
     "boot.module-signer"),
    ("16 no module after an update of the kernel", without_headers(meta=False), "drv.headers-meta"),
    ("17 Unable to find the kernel source tree", without_headers(meta=True), "drv.headers-running"),
    ("18 unrecognized command-line option -ftrivial-auto-var-init=zero", replace(
        unloaded(dkms=ADDED), kernel=replace(h.gcc().kernel, modules=frozenset()), packages=h.gcc("11.4.0").packages),
     "drv.compiler-match"),
    ("19 does not include the required GPU System Processor", misfit("1b06", "open", "580.178.04"),
     "drv.flavour-vs-arch"),
    ("20 RmInitAdapter failed on Blackwell", misfit("2901", "proprietary"), "drv.flavour-vs-arch"),
    ("21 system not yet initialized", fault("svc.fabric-state"), "svc.fabric-state"),
    ("21 interface version don't match with driver version", fault("svc.fabricmanager-version"),
     "svc.fabricmanager-version"),
    ("22 NV_WARN_NOTHING_TO_DO", test_svc.unit(test_svc.FM, replace(
        test_svc.RUNS, active="activating", sub="auto-restart", restarts=9), test_svc.PLAIN),
     "svc.fabricmanager-needless"),
    ("23 In Progress, 802, everything looks Ready", fault("svc.nvlsm"), "svc.nvlsm"),
    ("24 Conflicting values set for option Signed-By", machine.lists(machine.KEYRING, None), "ctk.repo-duplicate"),
    ("25 NO_PUBKEY", machine.lists(machine.KEYRING, held=("EB693B3035CD5710E231E123A4B469963BF863CC",)),
     "ctk.repo-key"),
    ("26 File has unexpected size. Mirror sync in progress?", failed_download(), "os.mirror-sync"),
    ("26 File has unexpected size, of the toolkit", failed_download("toolkit.install", replace(
        bare_docker(), toolkit=ToolkitFacts(), packages=h.packages(**NO_TOOLKIT))), "os.mirror-sync"),
    ("27 Could not get lock /var/lib/dpkg/lock-frontend", fault("os.pkg-lock"), "os.pkg-lock"),
    ("28 you have held broken packages", fault("os.held-packages"), "os.held-packages"),
    ("29 libnvidia-ml.so.1: cannot open shared object file", h.driver(
        libraries={"libcuda.so.1": h.READY.driver.libraries["libcuda.so.1"]}, smi=SmiFacts(12, "not found")),
     "user.libnvml"),
    ("30 bpf_prog_query(BPF_CGROUP_DEVICE) failed: rootless", only(replace(
        h.DOCKER_ENGINE, user="ann", owner="1000:1000"), ctk='nvidia-container-runtime.mode = "legacy"\n'),
     "ctk.device-rules"),
    ("30 bpf_prog_query(BPF_CGROUP_DEVICE) failed: LXC, an older toolkit", replace(
        h.toolkit(version="1.17.8"), platform="container", user_namespace=True), "ctk.device-rules"),
    ("30 bpf_prog_query(BPF_CGROUP_DEVICE) failed: cgroup v2, an old toolkit", h.toolkit(version="1.7.0"),
     "ctk.device-rules"),
    ("31 lstat /dev/nvidia-uvm", replace(h.kernel(modules=frozenset({"nvidia"})), uvm_major=None,
                                        devices=h.READY.devices[:2]), "drv.uvm-loaded"),
    ("32 unresolvable CDI devices", fault("ctk.cdi-fresh"), "ctk.cdi-fresh"),
    ("33 Insufficient nvidia.com/gpu", only(replace(h.CONTAINERD_ENGINE, effective_default="runc")),
     "rt.effective-default"),
    ("33 No devices found. Waiting indefinitely", replace(test_k8s.BLIND, runtimes=(test_k8s.RUNC,)),
     "rt.effective-default"),
    ("34 Could not unload NVIDIA driver kernel modules", h.driver(container=True), "drv.install-method"),
    ("35 In use by another client", fault("mig.mode-pending"), "mig.mode-pending"),
    ("36 nvidia-application-profiles-rc.d: read-only file system", h.toolkit(hook_refused="containerd"),
     "ctk.hook-read-only"),
    ("36 nvidia-application-profiles-rc.d: read-only file system, the device plugin's container", on_a_node(
        h.toolkit(hook_refused="kubelet")), "ctk.hook-read-only"),
    ("37 could not insert nvidia: Permission denied", replace(
        unloaded(installed=h.V, kernel_log=(test_checks.AVC.format("module_load", "path", "/lib/modules/nvidia.ko"),)),
        security=h.enforcing().security), "dev.selinux"),
    ("38 GPU has fallen off the bus", OFF_THE_BUS, "pci.fallen-off-bus"),
    # The same on nodes of Kubernetes, whose device plugin fails for it.
    ("2 Driver/library version mismatch on a node", on_a_node(h.driver(
        installed=NEWER, libraries=NEW_LIBS, smi=SmiFacts(18, "mismatch"))), "drv.running-vs-installed"),
    ("4 pods killed every few minutes, the device plugin's too", on_a_node(fault("rt.cgroup-driver")),
     "rt.cgroup-driver"),
    ("5 the node is NotReady", not_ready(fault("rt.dropin-version")), "rt.dropin-version"),
    ("3 the kubelet finds no CRI", not_ready(only(NO_CRI, containerd='disabled_plugins = ["cri"]\n')),
     "rt.cri-disabled"),
    ("7 container.Runtime.Name must be set on a node", on_a_node(fault("rt.runtime-type")), "rt.runtime-type"),
    ("9 the runtime config vanishes from a node", rewritten(), "rt.config-drift"),
    ("15 Key was rejected by service on a node", on_a_node(replace(
        unloaded(installed=h.V, signer=None), security=SecurityFacts(True))), "boot.module-signer"),
    ("29 could not load NVML library", on_a_node(h.driver(
        libraries={"libcuda.so.1": h.READY.driver.libraries["libcuda.so.1"]}, smi=SmiFacts(12, "not found"))),
     "user.libnvml"),
    ("38 GPU has fallen off the bus of a node", on_a_node(OFF_THE_BUS), "pci.fallen-off-bus"),
    ("sick: an automatic upgrade changed the libraries of a node", on_a_node(replace(
        h.driver(libraries=NEW_LIBS, smi=SmiFacts(18, "mismatch")), packages=machine.AUTOMATIC)),
     "drv.running-vs-userspace"),
    # Hosts that look healthy: engines, toolkit and nvidia-smi do as they should.
    ("sick: uncorrectable ECC errors", fault("health.ecc-volatile-unc"), "health.ecc-volatile-unc"),
    ("sick: uncorrectable errors, whose row waits to be remapped, and a GPU that asks for a reset", h.smi(h.seen(
        "repairs", h.seen("errors", replace(h.SEEN, recovery="Reset"), dram_uncorrectable=1), rows_pending=True)),
     "health.ecc-volatile-unc"),
    ("sick: a row waits to be remapped, and the GPU asks for a reset", h.smi(h.seen(
        "repairs", replace(h.SEEN, recovery="Drain and Reset"), rows_pending=True)), "health.row-remap-pending"),
    ("sick: an automatic upgrade changed the libraries", replace(
        h.driver(libraries=NEW_LIBS, smi=SmiFacts(18, "mismatch")), packages=machine.AUTOMATIC),
     "drv.running-vs-userspace"),
    ("sick: a full /boot has no initramfs of the next kernel", replace(
        h.kernel(next_boot="6.1.0-51-amd64"), system=fault("os.disk-boot").system), "os.disk-boot"),
    ("sick: a row remap is pending", fault("health.row-remap-pending"), "health.row-remap-pending"),
    ("sick: a row could not be remapped", fault("health.row-remap-failure"), "health.row-remap-failure"),
    ("sick: thermal slowdown", fault("health.clock-hw-slowdown"), "health.clock-hw-slowdown"),
    ("sick: persistenced is off", fault("svc.persistenced"), "svc.persistenced"),
    ("sick: the fabric manager failed", fault("svc.fabricmanager-active"), "svc.fabricmanager-active"),
    ("sick: unattended upgrades with nothing held", fault("os.unattended-upgrades"), "os.unattended-upgrades"),
    ("sick: all GPUs are gone", h.host(pci=()), "pci.gpu-present"),
    ("sick: dead kubelet feature gates", test_k8s.down(test_k8s.gates("1.28.1", DevicePlugins=True)),
     "k8s.feature-gates"),
    ("sick: the device plugin missed a restart of the kubelet", fault("k8s.dp-socket"), "k8s.dp-socket"),
    ("sick: the device plugin ends over and over", test_k8s.ENDS, "k8s.dp-container"),
    ("sick: a GPU waits for a reset", fault("health.recovery-action"), "health.recovery-action"),
    ("sick: a GPU of an older driver waits for a reset", fault("health.reset-required"), "health.reset-required"),
    ("sick: a GPU's sensors do not answer", fault("health.power-readable"), "health.readable"),
    ("sick: a program hangs in the driver", fault("health.processes-stuck"), "health.hang-detector"),
    ("sick: libnvidia-container sees the old libraries", replace(
        h.driver(libraries=NEW_LIBS, smi=SmiFacts(18, "mismatch")), toolkit=fault("ctk.cli-info").toolkit),
     "drv.running-vs-userspace"),
    ("sick: libnvidia-container does not reach the driver", fault("ctk.cli-info"), "ctk.cli-info"),
    ("sick: a GPU was left in exclusive mode", fault("svc.mps"), "svc.mps"),
)  # fmt: skip


def plan_of(host: HostFacts, options: tuple[str, ...]) -> Plan:
    return make_plan(host, put_all(Spec(), texts_of_words(options)), load_catalog())


def report_of(host: HostFacts) -> CheckReport:
    found = run_all(host, Spec(), load_catalog(), today=h.TODAY)
    return folded(agreed(found, lambda options: plan_of(host, options)))


ROWS = [pytest.param(host, id, id=symptom) for symptom, host, id in SCENARIOS]


@pytest.mark.parametrize(("host", "id"), ROWS)
def test_the_cause_stands_first(host: HostFacts, id: str) -> None:
    report = report_of(host)
    assert report.causes[0].id == id, [cause.id for cause in report.causes]
    errors = [cause.id for cause in report.causes if report.weight(cause) is Severity.ERROR]
    assert set(errors) <= {id}, "a symptom stands as a cause"
    found = report.causes[0].outcome
    assert isinstance(found, Finding)
    assert found.evidence
    assert found.remedy


@pytest.mark.parametrize(("host", "id"), ROWS)
def test_a_cause_takes_two_lines_and_v_has_all_of_it(host: HostFacts, id: str) -> None:
    report = report_of(host)
    brief, whole = check_text(report, Style(100)), check_text(report, Style(100, verbose=1))
    lines = above_the_count(brief, report).splitlines()
    assert len(lines) == 2 * len(report.causes)
    for first, second, cause in zip(lines[::2], lines[1::2], by_severity(report), strict=True):
        assert isinstance(cause.outcome, Finding)
        assert first.split()[:2] == [WORDS[report.weight(cause)][0], cause.id]
        assert len(first) <= 100
        remedy = remedy_text(cause.outcome.remedy)
        assert second.startswith("      → ")
        assert remedy.startswith(second.removeprefix("      → ").removesuffix(" …"))
        # A command is never cut: the first clause may be longer than the line.
        assert len(second) <= 100 or second == f"      → {whole_clauses(remedy, 0)}"
        for said in (cause.outcome.evidence, remedy):
            assert _words(said) in _words(whole)
    assert _words(brief).count("-v shows all of it") == 1


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(("host", "id"), ROWS)
def test_on_a_narrow_terminal_both_lines_wrap_and_nothing_of_them_is_cut(host: HostFacts, id: str, width: int) -> None:
    report = report_of(host)
    brief = above_the_count(check_text(report, Style(width)), report)
    assert " …" not in brief
    for cause in report.causes:
        assert isinstance(cause.outcome, Finding)
        assert _words(f"{cause.id} {cause.outcome.summary}") in _words(brief)
        assert _words(f"→ {remedy_text(cause.outcome.remedy)}") in _words(brief)


def above_the_count(text: str, report: CheckReport) -> str:
    assert report.facts is not None
    return text[: text.index(f"\n{report.facts.hostname}: ")]


def by_severity(report: CheckReport) -> list[CheckResult]:
    return sorted(report.causes, key=lambda cause: report.weight(cause) is not Severity.ERROR)


def _words(text: str) -> str:
    return " ".join(text.split())


def test_what_an_automatic_upgrade_did_is_mended_as_a_mismatch_and_the_policy_stands_next_to_it() -> None:
    """To pin the driver's packages, which the warning asks for, mends no mismatch that is there already."""
    host = next(host for name, host, _ in SCENARIOS if name == "sick: an automatic upgrade changed the libraries")
    report = report_of(host)
    mismatch, policy = by_severity(report)
    assert [mismatch.id, policy.id] == ["drv.running-vs-userspace", "os.unattended-upgrades"]
    assert "user.smi-works" in [one.id for one in report.consequences(mismatch)]
    assert report.consequences(policy) == ()
    assert verdict(HostOutcome("h", ExitCode.FAILED, check=report), strict=False, most=NHC_BYTES)[1].startswith(
        "drv.running-vs-userspace: "
    )


def test_every_reported_fault_is_decided() -> None:
    assert {row[0].split()[0] for row in SCENARIOS} == {*map(str, range(1, 39)), "sick:"}
