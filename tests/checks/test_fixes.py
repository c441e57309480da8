"""What `check --fix` mends and what it leaves to a person: every check is classed; a second run has no more to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpunode.catalog.load import load_catalog
from gpunode.checks import all_checks, run_all
from gpunode.checks.agreement import agreed
from gpunode.checks.causes import folded
from gpunode.checks.fixes import MENDED, left, with_fixes
from gpunode.cli.options.spec import texts_of_words
from gpunode.cli.verbs.check_fix import _parts
from gpunode.facts.collect import assemble
from gpunode.facts.recordings import load_recording
from gpunode.facts.wire import file_facts
from gpunode.fleet.fix_one import fix_plan, harmless
from gpunode.model.action import PutFile, RemoveFile, Run
from gpunode.model.facts import HostFacts, RuntimeFacts, ServiceFacts
from gpunode.model.files import FileFacts
from gpunode.model.fix import ByHand, Fix
from gpunode.model.installed import driver_set
from gpunode.model.plan import Plan, Step
from gpunode.model.report import CheckReport
from gpunode.model.spec import MigLayout, RebootPolicy, RuntimeSpec, Spec
from gpunode.planner.kernel.setup import LOAD_FILE
from gpunode.planner.plan import make_plan
from gpunode.specfile import put_all
from tests.checks import hosts as h

EXAMPLES = Path(__file__).parents[2] / "examples" / "hosts"
HOSTS = sorted(path.name for path in EXAMPLES.iterdir() if (path / "facts.txt").is_file())
SAFE = """boot.initramfs boot.nouveau-blacklisted ctk.cdi-devices ctk.cdi-fresh ctk.cdi-present ctk.cdi-readable
    ctk.cdi-refresh-unit dev.char-symlinks drv.module-loaded drv.uvm-loaded k8s.dra-boot k8s.dra-needs
    os.held-packages os.unattended-upgrades pci.runtime-pm
    rt.config-drift rt.containerd-file rt.containerd-live rt.crio rt.docker-file rt.docker-gpus
    rt.docker-live rt.effective-default rt.k3s rt.podman rt.runtime-type svc.persistenced"""
# A check that is new stands in one row; whoever writes it decides in which.
BY_HAND = {
    ByHand.REBOOT: """
        boot.nouveau-loaded boot.pending-reboot boot.secure-boot boot.uptime-vs-install drv.flavour
        drv.modprobe-options drv.rm-init drv.running-vs-installed drv.running-vs-userspace drv.taint
        health.hang-detector health.processes-stuck pci.count-vs-driver""",
    ByHand.GPU_WORK: """
        expect.mig health.ecc-mode health.ecc-volatile-unc health.leftover-memory health.nvlink-down
        health.nvlink-errors health.nvlink-rxdetect health.power-readable health.readable health.recovery-action
        health.repair-flags health.reset-required health.retired-pages health.row-remap-pending health.sxid
        health.xid-extended health.xid-recent mig.layout-vs-wanted mig.mode-pending svc.fabric-state
        svc.fabricmanager-active svc.imex""",
    ByHand.SERVICE: """
        svc.fabricmanager-needless
        fleet.clock-skew
        k8s.allocated-ghosts k8s.dp-dir k8s.podresources os.time-sync svc.dcgm svc.starts-at-boot""",
    ByHand.PACKAGES: """
        ctk.device-rules ctk.hook-read-only ctk.repo-key os.mirror-sync rt.snap-docker
        os.kernel-supported sec.ctk-mitigation
        boot.module-signer ctk.installed ctk.legacy-packages ctk.repo ctk.versions-match drv.branch-eol
        drv.branch-vs-arch drv.compiler-match drv.dkms-next drv.dkms-running drv.flavour-vs-arch drv.gsp-firmware
        drv.headers-meta drv.headers-running drv.install-method drv.package-consistency
        drv.version-running expect.cuda expect.driver expect.engines expect.flavour expect.kernel expect.os
        expect.packages expect.toolkit fleet.version-uniform k8s.dp-version k8s.kubelet-version net.ofed-version
        os.disk-boot
        os.supported pci.driver-bound rt.engine-eol rt.handler-binary rt.present rt.runc-version sec.ctk-cve
        sec.driver-bulletin sec.operator-cve svc.fabricmanager-version svc.nvlsm user.cuda-driver-api user.libcuda
        user.libnvml user.stale-libs""",
    ByHand.HARDWARE: """
        expect.model expect.nics expect.numa expect.nvswitches health.clock-counters
        health.clock-hw-slowdown
        health.clock-sw health.ecc-aggregate-unc health.gpu-lost health.mce health.pcie-replay
        health.row-remap-count health.row-remap-failure health.smoke-memtest health.temp-gpu health.temp-memory
        net.ib-errors net.ib-flap net.nic-gpu-affinity net.rdma-devices os.readonly-fs pci.aer-errors
        pci.device-support pci.expected-count pci.fallen-off-bus pci.gpu-present pci.link-speed pci.link-width
        pci.nvswitch-present""",
    ByHand.LOG: """
        boot.crash-evidence ctk.cli-info expect.vbios health.ecc-corrected health.inforom health.vbios-uniform
        os.answers-understood os.hung-tasks
        smoke.cuda smoke.dcgm svc.fabric-health svc.restart-flap user.smi-works""",
    ByHand.WAIT: """
        os.pkg-lock""",
    ByHand.DECISION: """
        ctk.repo-duplicate rt.k3s-template
        os.cpu-governor os.hugepages-thp os.proxy-dns sec.cve-db-age sec.modprobe-suid sec.visible-devices-policy
        user.cuda-toolkit-optional
        boot.cmdline-blocks boot.default-kernel ctk.cdi-duplicate ctk.config dev.caps dev.container
        dev.modes dev.nodes dev.selinux dev.uvm drv.excluded-gpus drv.gsp-policy drv.vgpu expect.cdi
        expect.default-runtime
        expect.handler fleet.hostkey fleet.ssh-sudo health.app-clocks health.compute-mode health.p2p health.power-cap
        k8s.capacity k8s.cgroup-v1 k8s.cpumanager k8s.detect k8s.dp-container k8s.dp-registered k8s.dp-socket k8s.dra
        k8s.eviction-pressure k8s.feature-gates k8s.image-pull k8s.kubelet-flags k8s.kubelet-up k8s.labels
        k8s.labels-legacy k8s.legacy-resource k8s.node-ready k8s.operator-managed k8s.runtimeclass k8s.sharing-config
        k8s.swap k8s.taints k8s.topology-manager mig.mixed-with-mps mig.uniform net.rdma-uniform os.disk-root
        os.dmesg-access os.fd-pids os.inodes os.memlock os.memory os.swap pci.acs pci.bar1-size pci.iommu-mode pci.numa
        rt.cgroup-driver rt.cri-disabled rt.daemon-restart-safe rt.drop-ins rt.dropin-version sec.docker-socket
        setup.driver setup.kubernetes setup.runtime setup.toolkit smoke.cleanup smoke.container-gpu smoke.daemon-reload
        svc.dcgm-profiling-lock svc.mps user.bad-envs user.smi-hidden""",
    ByHand.NO_STEP: """
        net.efa net.gdrcopy net.gds net.peermem""",
}
CLASS = dict.fromkeys(SAFE.split()) | {id: why for why, ids in BY_HAND.items() for id in ids.split()}

WANT = Spec()


def planned(host: HostFacts, spec: Spec = WANT) -> CheckReport:
    """The check as `gpunode check` makes it."""

    def plan(options: tuple[str, ...]) -> Plan:
        return make_plan(host, put_all(spec, texts_of_words(options)), load_catalog())

    return with_fixes(folded(agreed(run_all(host, spec, load_catalog(), today=h.TODAY), plan)), plan)


def fix_of(id: str, host: HostFacts, spec: Spec = WANT) -> Fix:
    fix = planned(host, spec).findings[id].fix
    assert fix is not None
    return fix


def plan_of(host: HostFacts, spec: Spec = WANT) -> Plan | None:
    parts = _parts(planned(host, spec), spec)
    return fix_plan(host, parts, load_catalog()) if parts else None


@pytest.mark.parametrize("doc", all_checks(), ids=lambda doc: doc.id)
def test_every_checks_remedy_is_classed(doc) -> None:  # type: ignore[no-untyped-def]
    assert doc.id in CLASS, "a new check: SAFE, with a row of MENDED, or a row of BY_HAND"
    assert CLASS[doc.id] == (None if doc.id in MENDED else left(doc.id, doc.remedy.action))


def test_no_row_is_of_a_check_that_is_not_there() -> None:
    assert set(CLASS) == {doc.id for doc in all_checks()}
    assert len(CLASS) == len([*SAFE.split(), *(id for ids in BY_HAND.values() for id in ids.split())])


READY = assemble(load_recording(EXAMPLES / "debian12-ready"), "debian12-ready")
PERSISTENCED = "nvidia-persistenced.service"
LOOSE = ServiceFacts("loaded", "inactive", "dead", "disabled")
NO_NVIDIA = {"effective_default": "runc", "handlers": ("runc",)}
DOCKER_LOST = replace(h.docker(**NO_NVIDIA), files=h.files(docker="{}"))


def ready(**changes: object) -> HostFacts:
    return replace(READY, **changes)  # type: ignore[arg-type]


def idle() -> HostFacts:
    """nvidia-persistenced was switched off."""
    smi = READY.driver.smi
    assert smi is not None
    gpus = tuple(replace(gpu, persistence=False) for gpu in smi.gpus)
    driver = replace(READY.driver, smi=replace(smi, gpus=gpus))
    return ready(driver=driver, services={**READY.services, PERSISTENCED: LOOSE})


OFF = idle()
UVM_GONE = ready(kernel=replace(READY.kernel, modules=READY.kernel.modules - {"nvidia_uvm"}), uvm_major=None)
NOT_BLACKLISTED = ready(kernel=replace(READY.kernel, blacklisted=frozenset()))
UNPINNED = ready(packages=replace(READY.packages, auto_upgrade=True, held=frozenset()))
LINKS = ready(
    devices=tuple(replace(device, char_link=False) for device in h.READY.devices),
    files={**READY.files, h.CTK: file_facts(h.CTK, 'nvidia-container-runtime.mode = "legacy"\n')},
    runtimes=tuple(replace(engine, systemd_cgroup={"runc": True}) for engine in READY.runtimes),
)
MENDABLE = {
    "rt.docker-file": (DOCKER_LOST, ("docker.default",)),
    "rt.docker-live": (h.docker(**NO_NVIDIA), ("docker.default",)),
    "drv.uvm-loaded": (UVM_GONE, ("driver.load",)),
    "boot.nouveau-blacklisted": (NOT_BLACKLISTED, ("kernel.nouveau",)),
    "dev.char-symlinks": (LINKS, ("driver.char-links",)),
    "svc.persistenced": (OFF, ("driver.services",)),
    "os.unattended-upgrades": (UNPINNED, ("driver.hold",)),
}


@pytest.mark.parametrize("id", MENDABLE)
def test_a_safe_finding_names_its_steps_and_the_plan_has_no_other(id: str) -> None:
    host, steps = MENDABLE[id]
    fix = fix_of(id, host)
    assert (fix.safe, fix.by_hand, fix.why, fix.steps) == (True, None, "", steps)
    plan = plan_of(host)
    assert plan is not None
    assert set(steps) <= {step.id for step in plan.steps}
    assert {step.id for step in plan.steps} == {
        s for f in planned(host).findings.values() if f.fix for s in f.fix.steps
    }
    assert not any(step.installs or step.by_hand for step in plan.steps)
    assert (plan.reboot, plan.spec.reboot, plan.spec.allow_container_restart) == (None, RebootPolicy.NEVER, False)


LEFT: Mapping[str, tuple[str, HostFacts, ByHand, str]] = {
    "a toolkit that is missing comes first": (
        "rt.docker-file",
        replace(DOCKER_LOST, toolkit=replace(h.TOOLKIT, version=None, runtime_path=None, hook_path=None)),
        ByHand.CAUSE,
        "ctk.installed",
    ),
    "a reboot is pending for it": (
        "drv.uvm-loaded",
        replace(
            UVM_GONE,
            driver=replace(UVM_GONE.driver, loaded="580.95.05", busy=("77 python",)),
            files={**UVM_GONE.files, LOAD_FILE: FileFacts(LOAD_FILE)},
        ),
        ByHand.REBOOT,
        "580.95.05 is loaded",
    ),
    "its containers would stop": (
        "rt.docker-gpus",
        h.docker(started_at=1, live_restore=False, containers_running=3),
        ByHand.CONTAINERS,
        "stops containers",
    ),
    "what it asks for is a reset": (
        "mig.mode-pending",
        h.smi(replace(h.SEEN, mig_pending="Enabled")),
        ByHand.GPU_WORK,
        "",
    ),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_to_a_person_says_why(case: str) -> None:
    id, host, reason, words = LEFT[case]
    fix = fix_of(id, host)
    assert (fix.safe, fix.by_hand, fix.steps) == (False, reason, ())
    assert words in fix.why
    assert fix.why


def test_a_spec_that_allows_more_does_not_make_a_fix_harmful() -> None:
    allowed = Spec(reboot=RebootPolicy.IF_NEEDED, allow_container_restart=True, allow_gpu_in_use=True)
    assert harmless(allowed) == Spec()
    assert harmless(Spec(runtime=RuntimeSpec(default=False))).runtime.default is False


def test_a_layout_is_not_cut_by_a_fix() -> None:
    slug = "ubuntu2404-mig-a100"
    host, cut = assemble(load_recording(EXAMPLES / slug), slug), Spec(mig=(MigLayout.parse("all=1g.10gb:7"),))
    assert "mig.layout" in {step.id for step in make_plan(host, cut, load_catalog()).steps}
    plan = plan_of(host, cut)
    assert "mig.layout" not in {step.id for step in plan.steps} if plan else True


def done(host: HostFacts, step: Step) -> HostFacts:
    """The host after a step, as far as the facts that checks and planner read are concerned."""
    for action in step.actions:
        if isinstance(action, PutFile):
            host = put(host, action)
        elif isinstance(action, RemoveFile):
            host = replace(host, files={p: f for p, f in host.files.items() if p != action.path})
        elif isinstance(action, Run):
            host = ran(host, action.argv, action.stdin)
    return configured(host, step.for_undo.engine) if step.for_undo.engine else host


def put(host: HostFacts, action: PutFile) -> HostFacts:
    host = replace(host, files={**host.files, action.path: file_facts(action.path, action.text)})
    words = [line.split() for line in action.text.splitlines()]
    black = frozenset(w[1] for w in words if w[:1] == ["blacklist"]) if "/modprobe.d/" in action.path else frozenset()
    return replace(host, kernel=replace(host.kernel, blacklisted=host.kernel.blacklisted | black))


def ran(host: HostFacts, argv: tuple[str, ...], stdin: str) -> HostFacts:
    match argv:
        case ("systemctl", "enable", *words):
            units = [word for word in words if word != "--now"]
            on = {unit: ServiceFacts("loaded", "active", "running", "enabled") for unit in units}
            smi = host.driver.smi
            gpus = tuple(replace(g, persistence=True) for g in smi.gpus) if smi else ()
            driver = replace(host.driver, smi=replace(smi, gpus=gpus) if smi else None)
            return replace(host, services={**host.services, **on}, driver=driver)
        case ("modprobe", module):
            modules = host.kernel.modules | {module.replace("-", "_")}
            return replace(host, kernel=replace(host.kernel, modules=modules), uvm_major=host.uvm_major or 511)
        case ("nvidia-ctk", "system", "create-dev-char-symlinks", *_):
            return replace(host, devices=tuple(replace(d, char_link=True) for d in host.devices))
        case ("apt-mark", "hold", *names):
            return held(host, names)
        case ("sh", "-s", "--", "nvidia-open", *_) if "hold $names" in stdin:
            return held(host, driver_set(host))
    return host


def held(host: HostFacts, names: Iterable[str]) -> HostFacts:
    return replace(host, packages=replace(host.packages, held=host.packages.held | frozenset(names)))


def configured(host: HostFacts, label: str) -> HostFacts:
    def one(engine: RuntimeFacts) -> RuntimeFacts:
        if engine.label != label:
            return engine
        written = tuple(p for p in host.files if p.startswith("/etc/containerd/conf.d/"))
        imports = tuple(dict.fromkeys((*engine.imports, *written))) if engine.name == "containerd" else engine.imports
        handlers = tuple(dict.fromkeys((*engine.handlers, "nvidia")))
        return replace(engine, effective_default="nvidia", handlers=handlers, imports=imports)

    return replace(host, runtimes=tuple(map(one, host.runtimes)))


def mended(host: HostFacts) -> tuple[HostFacts, list[str]]:
    plan = plan_of(host)
    for step in plan.steps if plan else ():
        host = done(host, step)
    return host, [step.id for step in plan.steps] if plan else []


def safe(host: HostFacts) -> list[str]:
    return [id for id, finding in planned(host).findings.items() if finding.fix and finding.fix.safe]


@pytest.mark.parametrize("id", MENDABLE)
def test_a_second_run_has_nothing_to_do(id: str) -> None:
    host, steps = mended(MENDABLE[id][0])
    assert steps
    assert safe(host) == []
    assert id not in planned(host).findings


def test_a_second_run_has_nothing_to_do_on_any_sample_host() -> None:
    seen = {}
    for slug in HOSTS:
        host, steps = mended(assemble(load_recording(EXAMPLES / slug), slug))
        if steps:
            seen[slug] = steps
            assert (slug, safe(host)) == (slug, [])
    assert len(seen) > 10
    assert {step for steps in seen.values() for step in steps} >= {
        "docker.default",
        "containerd.default",
        "kernel.nouveau",
    }


def test_no_package_is_touched_on_any_sample_host() -> None:
    for slug in HOSTS:
        plan = plan_of(assemble(load_recording(EXAMPLES / slug), slug))
        for step in plan.steps if plan else ():
            assert step.safe
            assert not any(isinstance(a, Run) and a.packages for a in step.actions if step.id != "driver.hold"), step.id
