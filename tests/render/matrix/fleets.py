"""Synthetic fleets: hosts that are alike but for what is odd on some of them, by their number, the same each time."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from gpunode.errors import ExitCode
from gpunode.model.facts import (
    DriverFacts,
    HostFacts,
    KernelFacts,
    KubernetesFacts,
    OsFacts,
    PciDevice,
    RuntimeFacts,
    ServiceFacts,
    ToolkitFacts,
)
from gpunode.model.files import FileFacts
from gpunode.model.report import CheckReport, CheckResult, Finding, HostOutcome, NotApplicable, Severity
from gpunode.remedy import Remedy, RepairAction, setup

AT_S = 1_795_651_200.0  # 2026-11-26
DAY_S = 86400
CONFIG, CDI = "/etc/containerd/config.toml", "/var/run/cdi/nvidia.yaml"
H100, L40S = "2330", "26b9"


def facts(name: str = "gpu01", *, device: str = H100, gpus: int = 8, driver: str = "595.91.07") -> HostFacts:
    """A node on which all is as it should be."""
    return HostFacts(
        target=name,
        hostname=name,
        os=OsFacts("ubuntu", "24.04", pretty_name="Ubuntu 24.04.3 LTS"),
        kernel=KernelFacts("6.8.0-51-generic", next_boot="6.8.0-51-generic"),
        root=True,
        product="PowerEdge XE9680" if device == H100 else "PowerEdge R760xa",
        pci=tuple(PciDevice(f"0000:{bus:02x}:00.0", "10de", device, "0302") for bus in range(1, gpus + 1)),
        driver=DriverFacts(
            loaded=driver,
            installed=driver,
            loaded_flavour="open",
            libraries=MappingProxyType({"libcuda.so.1": (f"/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}",)}),
        ),
        toolkit=ToolkitFacts(version="1.20.0", cdi_specs=(CDI,)),
        runtimes=(
            RuntimeFacts(
                "containerd",
                "2.1.9",
                CONFIG,
                "containerd.service",
                "/run/containerd/containerd.sock",
                active=True,
                effective_default="nvidia",
                systemd_cgroup=MappingProxyType({"nvidia": True, "runc": True}),
            ),
        ),
        services=MappingProxyType(
            {"nvidia-fabricmanager.service": ServiceFacts("loaded", "active" if device == H100 else "inactive")}
        ),
        kubernetes=KubernetesFacts(kubelet=True, kubelet_cgroup_driver="systemd"),
        files=MappingProxyType(
            {
                CONFIG: FileFacts(CONFIG, "version = 3\n", "0" * 64),
                CDI: FileFacts(CDI, "cdiVersion: 0.6.0\n", "1" * 64, written_at=int(AT_S) - 12 * DAY_S),
            }
        ),
    )


def passing(host: HostFacts) -> HostOutcome:
    return checked(host)


def checked(host: HostFacts, *found: CheckResult) -> HostOutcome:
    others = (
        CheckResult("drv.module-loaded", Severity.ERROR, None),
        CheckResult("mig.layout", Severity.ERROR, NotApplicable("no GPU has MIG")),
    )
    report = CheckReport(host.target, {one.id: one for one in (*found, *others)}, host)
    code = ExitCode.FAILED if report.failures else ExitCode.DONE
    return HostOutcome(host.target, code, check=report)


def error(id: str, summary: str, evidence: str, *remedy: str) -> CheckResult:
    action = Remedy(RepairAction.CONFIGURE, *(remedy or (setup("--only", "runtime"),)))
    return CheckResult(id, Severity.ERROR, Finding(summary, evidence, action))


def warning(id: str, summary: str, evidence: str) -> CheckResult:
    return CheckResult(id, Severity.WARNING, Finding(summary, evidence, Remedy(RepairAction.WAIT, "look at it again")))


def lost(name: str) -> HostOutcome:
    return HostOutcome(
        name,
        ExitCode.UNREACHABLE,
        problem=f"{name}: connection timed out",
        evidence="no answer from 10.0.3.7 port 22 within 10 s",
        remedy=Remedy(RepairAction.NONE, "look at its console"),
        check_id="fleet.ssh-sudo",
    )


def fleet(number: int) -> list[HostOutcome]:
    """Two kinds of nodes, named gpu1 ... ; one in fifty is odd in some way, one in ninety does not answer."""
    return [_member(place) for place in range(1, number + 1)]


def _member(place: int) -> HostOutcome:
    name = f"gpu{place}.rack{place // 16 + 1}.example"
    host = facts(name) if place % 3 else facts(name, device=L40S, gpus=4)
    match place % 90:
        case 0:
            return lost(name)
        case 17:
            default = replace(host.runtimes[0], effective_default="runc")
            return checked(
                replace(host, runtimes=(default,)),
                error("rt.effective-default", "containerd still runs with runc as its default", 'default "runc"'),
            )
        case 31:
            driver = facts(name, driver="580.95.05")
            return checked(driver, warning("fleet.version-uniform", "driver 580.95.05, where most have 595.91.07", "-"))
        case 44:
            return checked(
                replace(host, pci=host.pci[1:]),
                error("pci.gpu-count", f"GPU 0000:0{place % 9}:00.0 has fallen off the bus", "Xid 79", "power cycle"),
            )
        case 58:
            kernel = KernelFacts("6.8.0-49-generic", next_boot="6.8.0-51-generic")
            return checked(replace(host, kernel=kernel), warning("os.reboot", "a reboot is pending", "next 6.8.0-51"))
        case 73:
            files = {**host.files, CONFIG: FileFacts(CONFIG, f"version = 3\n# {place}\n", "2" * 64)}
            return checked(replace(host, files=MappingProxyType(files)))
    return passing(host)
