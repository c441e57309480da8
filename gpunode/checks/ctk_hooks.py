"""Do the toolkit's programs that run while a container starts end well here?"""

from __future__ import annotations

from gpunode.advice import listing, typed
from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import setting
from gpunode.model.entities import unit
from gpunode.model.facts import HostFacts, RuntimeFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_MODE, TOOLKIT_NO_CGROUPS
from gpunode.model.versions import at_least, numbers
from gpunode.remedy import Remedy, RepairAction, setup

SETUP = setup("--only", "toolkit")
READ_ONLY = "mkdirat etc/nvidia/nvidia-application-profiles-rc.d: read-only file system"


@check(
    "ctk.device-rules",
    Severity.ERROR,
    title="libnvidia-container can give containers their device rules on cgroup v2",
    reads=f"/proc/mounts; nvidia-ctk --version; mode and no-cgroups in {TOOLKIT_CONFIG}; whose root the engines have",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.toolkit, needs.engine),
)
def device_rules(host: HostFacts, context: Context) -> CheckOutcome:
    """Containers with GPUs do not start: bpf_prog_query(BPF_CGROUP_DEVICE) is not permitted, or not known.

    On cgroup v2 libnvidia-container adds to the BPF program that guards a container's devices, which takes root of
    the machine: a rootless engine's, and that of an unprivileged container (LXC), is another.
    """
    if host.cgroup != "v2":
        return NotApplicable(f"the cgroup hierarchy is {host.cgroup or 'not known'}; BPF programs are cgroup v2's")
    file, version = host.file(TOOLKIT_CONFIG), host.toolkit.version or ""
    if file.unread is not None:
        return NotApplicable(f"{TOOLKIT_CONFIG} was not read: {file.unread}")
    mode = setting(file, TOOLKIT_MODE) or "auto"
    if setting(file, TOOLKIT_NO_CGROUPS) == "true":
        return None
    legacy = mode == "legacy" or (mode == "auto" and not at_least(version, first_with("toolkit", "cdi-by-default")))
    if not legacy or not numbers(version):
        return None if numbers(version) else NotApplicable(f"nvidia-ctk's version {version!r} cannot be compared")
    if not at_least(version, first_with("toolkit", "cgroup-v2")):
        return Finding(
            f"libnvidia-container of toolkit {version} does not know cgroup v2: containers with GPUs do not start",
            evidence=f"/proc/mounts: /sys/fs/cgroup is cgroup2; nvidia-ctk --version prints {version}",
            remedy=Remedy(RepairAction.UPGRADE, SETUP),
        )
    return _without_rights(host, context, version, mode)


def _without_rights(host: HostFacts, context: Context, version: str, mode: str) -> CheckOutcome:
    engines = [e for e in host.runtimes if e.active and context.handler in e.handlers]
    refused = [e for e in engines if e.user or host.user_namespace]
    if not refused:
        inside = host.platform == "container" and host.user_namespace is None and engines
        return NotApplicable("whether this container's root is its machine's is not known") if inside else None
    whose = f"{refused[0].user}'s" if refused[0].user else "that of this unprivileged container"
    return Finding(
        f"containers with GPUs do not start in {listing(e.label for e in refused)}: libnvidia-container must load a "
        "BPF program, and may not",
        evidence=f"{refused[0].label}'s root is {whose}; {TOOLKIT_CONFIG}: mode {mode}, no-cgroups not true; "
        f"toolkit {version}",
        remedy=_way_out(engines, refused, mode),
        entities=unit(*(e.unit for e in refused if not e.user)),
    )


def _way_out(engines: list[RuntimeFacts], refused: list[RuntimeFacts], mode: str) -> Remedy:
    """no-cgroups is the whole host's: an engine that runs as root would lose its GPUs by it."""
    if mode == "auto":
        return Remedy(RepairAction.UPGRADE, SETUP, ", whose mode auto makes CDI specifications and needs no BPF")
    key = (
        "nvidia-container-cli.no-cgroups=true" if len(refused) == len(engines) else "nvidia-container-runtime.mode=cdi"
    )
    return Remedy(RepairAction.CONFIGURE, typed("nvidia-ctk", "config", "--in-place", "--set", key))


@check(
    "ctk.hook-read-only",
    Severity.ERROR,
    title="no container failed for the toolkit's hook that writes below /etc/nvidia",
    reads="nvidia-ctk --version; for 1.20.0 the engines' and the kubelet's newest log lines",
    remedy=Remedy(RepairAction.UPGRADE, SETUP),
    needs=(needs.gpu_for_containers, needs.own_toolkit, needs.toolkit),
)
def hook_read_only(host: HostFacts, context: Context) -> CheckOutcome:
    """A container with GPUs does not start: toolkit 1.20.0 writes below its /etc/nvidia, which is read-only.

    NVIDIA's device plugin has its ConfigMap there in some deployments.
    """
    version = host.toolkit.version or ""
    if not numbers(version):
        return NotApplicable(f"nvidia-ctk's version {version!r} cannot be compared")
    mended = at_least(version, first_with("toolkit", "profiles-hook-mended"))
    if mended or not at_least(version, first_with("toolkit", "profiles-hook")):
        return None
    if host.toolkit.hook_refused is None:
        return NotApplicable(f"the engines' logs were not read: {host.unread.get('hook_log', 'an older recording')}")
    if not host.toolkit.hook_refused:
        return None
    latest = context.catalog.toolkit.latest
    return Finding(
        f"a container did not start: a hook of toolkit {version} fails where its /etc/nvidia is read-only",
        evidence=f'log of {host.toolkit.hook_refused}: "{READ_ONLY}"',
        remedy=Remedy(
            RepairAction.UPGRADE,
            setup("--only", "toolkit", "--toolkit", latest),
            "; until then mount what is below /etc/nvidia of the container elsewhere",
        ),
    )
