"""Hand-made values that the renderers' tests show."""

from __future__ import annotations

from gpunode.model.action import PutFile, Run
from gpunode.model.driver import DriverChoice
from gpunode.model.plan import Kept, Plan, Step
from gpunode.model.report import CheckReport, CheckResult, Finding, NotApplicable, Severity
from gpunode.model.spec import Spec
from gpunode.model.summary import EngineVersion, GpuCount, HostSummary
from gpunode.remedy import Remedy, RepairAction, setup

PLAN = Plan(
    target="gpu07",
    spec=Spec(),
    facts_sha256="f" * 64,
    about=HostSummary(
        "Ubuntu 24.04", "6.8.0-51-generic", (GpuCount("H100 SXM5 80GB", 8),), 0, (EngineVersion("docker", "28.5.2"),)
    ),
    driver=DriverChoice(595, "595.91.07", "open", ("8 × Hopper run either flavour",)),
    steps=(
        Step(
            "repo.cuda",
            "add NVIDIA's CUDA repository",
            "no repository has it",
            (Run(("apt-get", "update"), detach=True),),
        ),
        Step(
            "docker.default",
            "/etc/docker/daemon.json: + runtimes.nvidia, default-runtime runc → nvidia",
            "docker runs runc",
            (PutFile("/etc/docker/daemon.json", "{}\n", validate=Run(("dockerd", "--validate"))),),
            diff="-{}\n+{1}",
        ),
    ),
    kept=(Kept("secure-boot", "Secure Boot is off"), Kept("cgroup", "kubelet's cgroup driver is systemd, as runc's")),
    reboot="nouveau is loaded",
)

INSTALL = Remedy(RepairAction.UPGRADE, "install")
CHECK = CheckReport(
    "gpu04",
    {
        r.id: r
        for r in (
            CheckResult("drv.loaded", Severity.ERROR, None),
            CheckResult("drv.mig", Severity.ERROR, NotApplicable("no GPU has MIG")),
            CheckResult(
                "drv.dkms-next",
                Severity.WARNING,
                Finding("the next boot has no module", "6.8.0-52 lacks it", INSTALL),
            ),
            CheckResult(
                "rt.effective-default",
                Severity.ERROR,
                Finding(
                    "containerd still runs with runc as its default",
                    'defaultRuntimeName "runc"',
                    Remedy(RepairAction.CONFIGURE, setup()),
                ),
            ),
        )
    },
)
FOUND = CheckResult("os.cpu-governor", Severity.WARNING, None, evidence="64 × performance")
