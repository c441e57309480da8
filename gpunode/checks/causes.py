"""Causes, not symptoms: which finding explains which others, and what is left to begin with.

TABLE is the whole knowledge. A row holds where both findings are there and its conditions are met; a finding without
entities is about the host as a whole, and no row that asks for the same GPU, unit or file explains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpunode.model.entities import EntityKind
from gpunode.model.facts import HostFacts
from gpunode.model.installed import signs_of_driver
from gpunode.model.layers import depth
from gpunode.model.report import CheckReport, CheckResult, Finding
from gpunode.remedy import Remedy
from gpunode.values import dataclass


@dataclass(frozen=True)
class Explains:
    """The finding of one check explains those of others."""

    cause: str
    consequences: tuple[str, ...]
    same: EntityKind | None = None  # only what is about the same GPUs, units or files, of all causes together
    driver: bool | None = None  # only on a host that has a driver on disk, or only on one that has none
    together: bool = False  # only what the same remedy mends: a host that was never set up, a disk without room


DOCKER = ("rt.docker-file", "rt.docker-live", "rt.docker-gpus")
CONTAINERD = ("rt.containerd-file", "rt.containerd-live")
ENGINES = (*DOCKER, *CONTAINERD, "rt.effective-default")
NO_GPU = ("pci.driver-bound", "pci.count-vs-driver", "dev.nodes", "user.smi-works")
WAITS = ("health.recovery-action", "health.reset-required")
UNREAD = ("pci.count-vs-driver", "health.readable", "health.power-readable", "drv.rm-init", "pci.link-width")
# A device plugin that gets no GPU ends, or waits without a socket.
PLUGIN = ("k8s.dp-container", "k8s.dp-socket", "k8s.dp-registered", "k8s.capacity")
GPU, UNIT, FILE = EntityKind.PCI, EntityKind.UNIT, EntityKind.FILE

TABLE = (
    Explains("pci.gpu-present", ("pci.expected-count", "ctk.cdi-devices", "expect.model", "expect.numa", "expect.mig")),
    Explains("pci.expected-count", ("expect.numa",)),
    Explains("pci.fallen-off-bus", (*UNREAD, "health.gpu-lost", *WAITS, *NO_GPU), same=GPU),
    Explains("pci.fallen-off-bus", ("user.smi-works", "ctk.cdi-devices", "health.processes-stuck", "ctk.cli-info")),
    Explains("health.gpu-lost", (*UNREAD, *WAITS), same=GPU),
    Explains("health.gpu-lost", ("user.smi-works", "ctk.cdi-devices", "health.processes-stuck", "ctk.cli-info")),
    # Memory that ECC could not correct is replaced by spare rows, for which the driver asks for a reset.
    Explains("health.ecc-volatile-unc", ("health.row-remap-pending", *WAITS), same=GPU),
    Explains("health.row-remap-pending", WAITS, same=GPU),
    *(Explains(w, ("health.readable", "health.power-readable", "pci.count-vs-driver"), same=GPU) for w in WAITS),
    Explains("health.readable", ("health.power-readable",), same=GPU),
    Explains("pci.bar1-size", ("drv.rm-init", *NO_GPU), same=GPU),
    Explains("pci.device-support", ("drv.branch-vs-arch", "drv.flavour-vs-arch", "drv.rm-init", *NO_GPU), same=GPU),
    Explains("pci.device-support", ("setup.driver",)),
    Explains("boot.cmdline-blocks", ("drv.module-loaded",), driver=True),
    Explains("boot.nouveau-loaded", ("drv.module-loaded", "pci.driver-bound"), driver=True),
    Explains("boot.nouveau-loaded", ("boot.nouveau-blacklisted", "boot.initramfs"), driver=True),
    # The kernel takes nouveau where there is nothing else for the GPU.
    Explains("drv.module-loaded", ("boot.nouveau-loaded",), driver=False),
    Explains("boot.module-signer", ("drv.module-loaded",)),
    Explains("drv.headers-meta", ("drv.headers-running", "drv.dkms-next")),
    Explains("drv.headers-running", ("drv.dkms-running", "drv.dkms-next", "drv.module-loaded")),
    Explains("os.kernel-supported", ("drv.dkms-running", "drv.dkms-next", "drv.module-loaded")),
    Explains("drv.compiler-match", ("drv.dkms-running", "drv.dkms-next", "drv.module-loaded")),
    Explains("dev.selinux", ("drv.module-loaded",)),
    Explains("drv.dkms-running", ("drv.dkms-next", "drv.module-loaded")),
    Explains("drv.package-consistency", ("drv.module-loaded",), together=True),
    Explains("os.mirror-sync", ("drv.module-loaded",), driver=False),
    Explains("os.mirror-sync", ("ctk.installed",)),
    Explains("drv.module-loaded", (*NO_GPU, "dev.uvm", "drv.uvm-loaded", "svc.persistenced", "ctk.cdi-present")),
    Explains("drv.module-loaded", ("ctk.installed", *ENGINES), driver=False, together=True),
    Explains("drv.module-loaded", ("expect.driver", "expect.flavour"), driver=False),
    Explains("drv.module-loaded", PLUGIN),
    Explains("drv.running-vs-installed", ("drv.running-vs-userspace", "drv.modprobe-options", "boot.pending-reboot")),
    Explains("drv.running-vs-userspace", ("user.smi-works", "boot.pending-reboot", "ctk.cdi-fresh", "ctk.cli-info")),
    Explains("drv.branch-vs-arch", ("drv.rm-init", *NO_GPU), same=GPU),
    Explains("drv.flavour-vs-arch", ("drv.rm-init", *NO_GPU), same=GPU),
    Explains("drv.rm-init", NO_GPU, same=GPU),
    Explains("pci.driver-bound", ("pci.count-vs-driver", "dev.nodes", "user.smi-works"), same=GPU),
    Explains("pci.count-vs-driver", ("dev.nodes", "user.smi-works"), same=GPU),
    Explains("pci.runtime-pm", ("pci.link-width",), same=GPU),
    Explains("user.libnvml", ("user.smi-works", "ctk.cli-info")),
    *(Explains(cause, ("ctk.cli-info",)) for cause in ("user.smi-works", "dev.nodes", "ctk.versions-match")),
    Explains("dev.nodes", ("dev.uvm",)),
    Explains("drv.uvm-loaded", ("dev.uvm",)),
    Explains("svc.fabricmanager-active", ("svc.fabric-state", "svc.fabric-health", "health.nvlink-down")),
    Explains("health.gpu-lost", ("health.nvlink-down",), same=GPU),
    *(Explains(waits, ("health.nvlink-down", "health.nvlink-rxdetect", "ctk.cli-info")) for waits in WAITS),
    # The log has which tasks hung when; what is stuck now is part of it.
    Explains("health.hang-detector", ("health.processes-stuck",)),
    Explains("health.nvlink-down", ("health.nvlink-errors",), same=GPU),
    *(Explains(cause, ("health.p2p",)) for cause in ("svc.fabricmanager-active", "svc.fabric-state", "pci.acs")),
    Explains("net.rdma-devices", ("net.nic-gpu-affinity",)),
    Explains("net.ib-flap", ("net.ib-errors", "net.rdma-devices")),
    Explains("svc.persistenced", ("pci.runtime-pm",)),
    Explains("ctk.installed", ENGINES, together=True),
    Explains("ctk.installed", ("rt.handler-binary", "ctk.cdi-present", "k8s.runtimeclass", *PLUGIN)),
    Explains("rt.runtime-type", ("rt.handler-binary",), same=UNIT),
    Explains("ctk.device-rules", ("sec.ctk-cve",), together=True),
    *(Explains(cause, ("smoke.container-gpu",)) for cause in ("ctk.device-rules", "ctk.hook-read-only")),
    *(Explains(cause, PLUGIN) for cause in ("ctk.device-rules", "ctk.hook-read-only")),
    Explains("ctk.cdi-duplicate", ("ctk.cdi-fresh", "ctk.cdi-devices"), same=FILE),
    Explains("ctk.cdi-refresh-unit", ("ctk.cdi-fresh", "ctk.cdi-devices")),
    Explains("ctk.installed", ("expect.toolkit",)),
    Explains("drv.module-loaded", ("expect.cuda", "expect.mig", "expect.vbios")),
    Explains("user.smi-works", ("expect.cuda", "expect.mig", "expect.vbios")),
    Explains("rt.present", ("expect.engines", "expect.handler", "expect.default-runtime", "expect.cdi"), same=UNIT),
    Explains("expect.driver", ("expect.cuda",)),
    Explains("svc.fabricmanager-version", ("svc.fabricmanager-active", "svc.fabric-state", "drv.package-consistency")),
    Explains("svc.fabricmanager-needless", ("svc.restart-flap",), same=UNIT),
    Explains("ctk.repo-duplicate", ("ctk.repo", "ctk.repo-key")),
    Explains("ctk.repo", ("ctk.repo-key",)),
    Explains("svc.nvlsm", ("svc.fabricmanager-active", "svc.fabric-state")),
    Explains("rt.config-drift", ENGINES, same=UNIT),
    Explains("rt.dropin-version", ("rt.present", "rt.cri-disabled", *CONTAINERD, "rt.effective-default"), same=UNIT),
    Explains("rt.drop-ins", ("rt.present", *CONTAINERD, "rt.effective-default"), same=UNIT),
    Explains("rt.k3s-template", ("rt.present", "rt.k3s", "rt.effective-default"), same=UNIT),
    Explains("rt.k3s-template", ("setup.runtime", "k8s.kubelet-up", "k8s.node-ready")),
    Explains("rt.present", (*ENGINES, "rt.cri-disabled"), same=UNIT),
    Explains("rt.cri-disabled", (*CONTAINERD, "rt.effective-default"), same=UNIT),
    *(Explains(cause, ("smoke.container-gpu",)) for cause in ("drv.module-loaded", "user.smi-works", "dev.nodes")),
    *(Explains(cause, ("smoke.container-gpu",)) for cause in ("ctk.installed", "ctk.cli-info", "rt.handler-binary")),
    *(Explains(cause, ("smoke.container-gpu",), same=UNIT) for cause in ("rt.present", *DOCKER, *CONTAINERD)),
    Explains("dev.char-symlinks", ("smoke.daemon-reload",)),
    Explains("rt.docker-file", ("rt.docker-live", "rt.effective-default", "rt.docker-gpus"), same=UNIT),
    Explains("rt.containerd-file", ("rt.containerd-live", "rt.effective-default"), same=UNIT),
    Explains("rt.docker-live", ("rt.effective-default", "rt.docker-gpus"), same=UNIT),
    Explains("rt.containerd-live", ("rt.effective-default",), same=UNIT),
    Explains("os.disk-boot", ("boot.default-kernel",)),
    Explains("os.time-sync", ("fleet.clock-skew",)),
    Explains("rt.effective-default", ("k8s.runtimeclass",), same=UNIT),
    Explains("rt.containerd-file", ("k8s.runtimeclass",), same=UNIT),
    Explains("rt.containerd-live", ("k8s.runtimeclass",), same=UNIT),
    Explains("rt.cri-disabled", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("drv.install-method", ("k8s.operator-managed",)),
    *(Explains(cause, PLUGIN) for cause in ("pci.fallen-off-bus", "health.gpu-lost", "drv.running-vs-userspace")),
    *(Explains(cause, PLUGIN) for cause in ("user.smi-works", "dev.nodes", "rt.cgroup-driver")),
    *(Explains(cause, PLUGIN) for cause in ("rt.dropin-version", "rt.drop-ins", "rt.runtime-type", "rt.cri-disabled")),
    *(Explains(cause, ("k8s.kubelet-up", "k8s.node-ready")) for cause in ("rt.dropin-version", "rt.drop-ins")),
    Explains("k8s.cgroup-v1", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("k8s.feature-gates", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("k8s.kubelet-flags", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("k8s.kubelet-version", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("k8s.labels-legacy", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("k8s.swap", ("k8s.kubelet-up", "k8s.node-ready")),
    # One unit has engine and kubelet inside, in k3s and rke2.
    *(Explains(c, ("rt.present",), same=UNIT) for c in ("k8s.cgroup-v1", "k8s.feature-gates", "k8s.labels-legacy")),
    Explains("k8s.kubelet-flags", ("rt.present",), same=UNIT),
    Explains("rt.present", ("k8s.kubelet-up",), same=UNIT),
    # DiskPressure alone: no room on a disk takes the memory or the processes.
    Explains("os.disk-root", ("k8s.eviction-pressure",), together=True),
    Explains("k8s.kubelet-up", ("k8s.node-ready", "k8s.capacity", "k8s.eviction-pressure")),
    Explains("k8s.taints", ("k8s.dp-container",)),
    Explains("k8s.detect", ("k8s.kubelet-up", "k8s.node-ready")),
    Explains("k8s.image-pull", PLUGIN),
    Explains("k8s.sharing-config", PLUGIN),
    Explains("mig.uniform", PLUGIN),
    Explains("mig.mixed-with-mps", PLUGIN),
    Explains("mig.layout-vs-wanted", ("mig.uniform",)),
    Explains("k8s.dp-dir", ("k8s.dp-socket", "k8s.dp-registered", "k8s.capacity", "k8s.podresources")),
    Explains("k8s.runtimeclass", PLUGIN),
    Explains("k8s.dp-container", ("k8s.dp-socket", "k8s.dp-registered", "k8s.capacity", "k8s.operator-managed")),
    Explains("k8s.dp-socket", ("k8s.dp-registered", "k8s.capacity")),
    Explains("health.gpu-lost", ("k8s.dp-registered", "k8s.capacity")),
    Explains("health.xid-recent", ("k8s.dp-registered", "k8s.capacity")),
    Explains("k8s.dp-registered", ("k8s.capacity",)),
)  # fmt: skip

# What a consequence is called in the one line under its cause.
IN_SHORT: Mapping[str, str] = {
    "boot.default-kernel": "the next kernel has no initramfs",
    "boot.initramfs": "the next boot's initramfs loads the wrong driver",
    "boot.nouveau-blacklisted": "nouveau is not blacklisted",
    "boot.nouveau-loaded": "nouveau is loaded",
    "boot.pending-reboot": "a reboot is pending",
    "ctk.cdi-devices": "CDI names other GPUs",
    "ctk.cdi-fresh": "CDI is stale",
    "ctk.cdi-present": "CDI has no GPUs",
    "ctk.cli-info": "libnvidia-container does not reach the driver",
    "ctk.installed": "no container toolkit",
    "ctk.repo": "a repository that has ended",
    "ctk.repo-key": "a repository without its key",
    "dev.nodes": "no device nodes",
    "dev.uvm": "no /dev/nvidia-uvm",
    "drv.branch-vs-arch": "the driver does not fit the GPU",
    "drv.dkms-next": "no module at the next boot",
    "drv.dkms-running": "DKMS has no module",
    "drv.flavour-vs-arch": "the module's flavour does not fit the GPU",
    "drv.headers-running": "no headers of the running kernel",
    "drv.modprobe-options": "the module has other options",
    "drv.module-loaded": "module not loaded",
    "drv.package-consistency": "packages of two versions",
    "drv.rm-init": "the driver cannot start the GPU",
    "drv.running-vs-userspace": "the libraries do not fit the module",
    "drv.uvm-loaded": "nvidia_uvm not loaded",
    "expect.cdi": "CDI is not as expected",
    "expect.cuda": "another CUDA than expected",
    "expect.default-runtime": "not the expected default runtime",
    "expect.driver": "not the expected driver",
    "expect.engines": "not the expected engines",
    "expect.flavour": "not the expected kernel modules",
    "expect.handler": "not the expected handler",
    "expect.mig": "not the expected MIG layout",
    "expect.model": "not the expected GPUs",
    "expect.numa": "GPUs at other NUMA nodes than expected",
    "expect.vbios": "not the expected VBIOS",
    "expect.toolkit": "not the expected toolkit",
    "fleet.clock-skew": "the clock is off",
    "health.gpu-lost": "nvidia-smi cannot reach it",
    "health.nvlink-down": "NVLinks are down",
    "health.nvlink-errors": "NVLinks have errors",
    "health.nvlink-rxdetect": "the driver cannot tell which NVLinks are connected",
    "health.p2p": "GPUs cannot read each other's memory",
    "health.power-readable": "its sensors do not answer",
    "health.processes-stuck": "programs that use the GPUs are stuck",
    "health.readable": "nvidia-smi cannot read it",
    "health.recovery-action": "it asks for a reset",
    "health.reset-required": "it waits for a reset",
    "health.row-remap-pending": "a row of memory waits to be remapped",
    "k8s.capacity": "the node offers no GPU, or fewer",
    "k8s.dp-container": "the device plugin does not run",
    "k8s.dp-registered": "the kubelet does not know all GPUs",
    "k8s.dp-socket": "the device plugin has not registered",
    "k8s.eviction-pressure": "the kubelet evicts pods",
    "k8s.kubelet-up": "the kubelet does not run",
    "k8s.node-ready": "the node is not ready",
    "k8s.operator-managed": "the GPU Operator has not validated the node",
    "k8s.podresources": "monitoring cannot name pods",
    "k8s.runtimeclass": "the device plugin sees no GPU",
    "mig.uniform": "the GPUs are not partitioned alike",
    "net.ib-errors": "links of RDMA ports are not stable",
    "net.nic-gpu-affinity": "GPUs without an RDMA device near them",
    "net.rdma-devices": "RDMA ports are down",
    "pci.count-vs-driver": "the driver lacks GPUs",
    "pci.driver-bound": "GPUs without the driver",
    "pci.expected-count": "fewer GPUs than expected",
    "pci.link-width": "a narrow PCIe link",
    "pci.runtime-pm": "GPUs are suspended",
    "rt.containerd-file": "containerd's files have no GPU handler",
    "rt.containerd-live": "containerd has no GPU handler",
    "rt.cri-disabled": "CRI does not answer",
    "rt.docker-file": "daemon.json has no GPU runtime",
    "rt.docker-gpus": "docker run --gpus fails",
    "rt.docker-live": "docker has no GPU runtime",
    "rt.effective-default": "another runtime is the default",
    "rt.handler-binary": "the handler's program is missing",
    "rt.k3s": "its containerd has no GPU handler",
    "rt.present": "the engine does not run",
    "sec.ctk-cve": "the toolkit has a known CVE",
    "smoke.container-gpu": "a container does not get the GPU",
    "smoke.daemon-reload": "a reload of systemd takes the GPU away",
    "setup.runtime": "setup refuses the engine",
    "setup.driver": "setup has no driver for it",
    "svc.fabric-health": "the fabric is not healthy",
    "svc.fabric-state": "GPUs have not joined the NVLink fabric",
    "svc.fabricmanager-active": "the fabric manager does not run",
    "svc.restart-flap": "a service starts over and over",
    "svc.persistenced": "persistenced does not run",
    "user.smi-works": "nvidia-smi fails",
}


def folded(report: CheckReport) -> CheckReport:
    """The report with each finding's cause, and each cause's consequences.

    Who refused a remedy has named the cause already (agreement.py); the table says the rest.
    """
    facts = report.facts
    findings = {id: r.outcome for id, r in report.results.items() if isinstance(r.outcome, Finding)}
    # What was accepted, or left out, explains nothing: what followed from it would be hidden with it.
    found = {id: one for id, one in findings.items() if not one.accepted}
    if facts is None or not findings:
        return report
    rows = _rows_here(facts)
    direct = {id: cause for id, one in found.items() if (cause := one.cause or _explained_by(id, found, rows)) in found}
    chains = {id: chain for id in direct if (chain := _chain(id, direct))}
    changed = {id: _said(report.results[id], one, id, chains) for id, one in findings.items()}
    return replace(report, results={**report.results, **changed})


def explains(id: str) -> tuple[str, ...]:
    """The checks whose findings this one's may explain, lowest layer first."""
    return _ordered(other for row in TABLE if row.cause == id for other in row.consequences)


def explained_by(id: str) -> tuple[str, ...]:
    """The checks whose findings may explain this one's, lowest layer first."""
    return _ordered(row.cause for row in TABLE if id in row.consequences)


def _ordered(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(ids), key=lambda id: (depth(id), id)))


def _rows_here(facts: HostFacts) -> tuple[Explains, ...]:
    driver = facts.driver.loaded is not None or bool(signs_of_driver(facts))
    return tuple(row for row in TABLE if row.driver in (None, driver))


def _explained_by(id: str, found: Mapping[str, Finding], rows: tuple[Explains, ...]) -> str | None:
    """The first cause in the table's order, which goes from the hardware up."""
    # What a refusal has explained by this finding does not explain it in turn.
    held = [row for row in rows if id in row.consequences and row.cause in found and found[row.cause].cause != id]
    covered = {
        kind for kind in EntityKind if _covered(found[id], [found[r.cause] for r in held if r.same is kind], kind)
    }
    for row in held:
        same = row.same is None or (
            row.same in covered and _names(found[row.cause], row.same) & _names(found[id], row.same)
        )
        if same and (not row.together or _one_remedy(found[row.cause].remedy, found[id].remedy)):
            return row.cause
    return None


def _covered(finding: Finding, causes: Iterable[Finding], kind: EntityKind) -> bool:
    """Whether all that a finding is about is in its causes: of two engines, each may have a cause of its own."""
    names = _names(finding, kind)
    return bool(names) and names <= {name for cause in causes for name in _names(cause, kind)}


def _names(finding: Finding, kind: EntityKind) -> set[str]:
    return {entity.name for entity in finding.entities if entity.kind is kind}


def _one_remedy(one: Remedy, other: Remedy) -> bool:
    """The same command of gpunode's, or the same words where neither has one."""
    if one.command or other.command:
        return one.command == other.command
    return bool(one) and one == other


def _chain(id: str, direct: Mapping[str, str]) -> tuple[str, ...]:
    """What explains a finding, nearest first; its last is where to begin. () for one of a circle: it stays shown."""
    chain = [id]
    while (cause := direct.get(chain[-1])) is not None:
        if cause in chain:
            return ()
        chain.append(cause)
    return tuple(chain[1:])


def _said(result: CheckResult, finding: Finding, id: str, chains: Mapping[str, tuple[str, ...]]) -> CheckResult:
    follow = [other for other, chain in chains.items() if chain[-1] == id]
    follow.sort(key=lambda other: (len(chains[other]), depth(other), other))
    cause = chains[id][-1] if id in chains else None
    short = finding.short or IN_SHORT.get(id, finding.summary)
    return replace(result, outcome=replace(finding, cause=cause, consequences=tuple(follow), short=short))
