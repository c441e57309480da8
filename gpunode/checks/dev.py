"""Device nodes: what programs and containers open to reach a GPU."""

from __future__ import annotations

import re

from gpunode.advice import listing, typed
from gpunode.catalog.versions import first_with
from gpunode.checks import needs
from gpunode.checks.registry import Context, check
from gpunode.checks.words import driver_version, setting
from gpunode.model.entities import pci
from gpunode.model.facts import HostFacts
from gpunode.model.report import CheckOutcome, Finding, NotApplicable, Severity
from gpunode.model.spec import TOOLKIT_CONFIG, TOOLKIT_MODE
from gpunode.model.versions import at_least
from gpunode.regex import regex
from gpunode.remedy import Remedy, RepairAction, setup

NVIDIA_MAJOR = 195  # fixed for nvidia and nvidiactl (Documentation/admin-guide/devices.txt); nvidia-uvm's is dynamic
GPU_NODE = regex(r"/dev/nvidia\d+")
CAPABILITY = regex(r"/dev/nvidia-caps/nvidia-cap\d+")
# The kernel's own words; audit writes what a user chose in hexadecimal where it has a quote or blank in it.
DENIED = regex(
    r"\[ *\d{1,9}\.\d{1,9}\](?: ?\[ *[TC]\d{1,10}\])? (?:\S{1,64} kernel: )?"
    r"audit: type=1400 audit\([0-9.:]{1,40}\): avc: {1,2}denied {1,2}"
    r"\{ (?P<what>[a-z_ ]{1,60}) \} .{0,300}? (?:path|name)=\"(?P<about>[\w./-]{0,160}nvidia[\w./-]{0,60})\"",
    re.A,
)
FOR_ADMINS = (1, 2)  # mig/config and mig/monitor (/proc/driver/nvidia-caps/mig-minors)
MAKE_NODES = (
    "nvidia-modprobe -c 0, once for every GPU (-c 1, ...); systemctl enable --now nvidia-persistenced maintains them"
)
GIVEN = Remedy(
    RepairAction.CONFIGURE,
    "on the machine around it: `lxc config device add CONTAINER gpu gpu` and nvidia.runtime=true (LXD, Incus), "
    "elsewhere the device nodes in the container's configuration; its libraries are of the loaded driver's version",
)
NODES = (needs.gpu, needs.host_driver, needs.loaded, needs.read("devices"))


@check(
    "dev.nodes",
    Severity.ERROR,
    title="/dev has a node for every GPU",
    reads="/dev/nvidiactl, /dev/nvidia0 ... against /proc/driver/nvidia/gpus",
    remedy=Remedy(
        RepairAction.CONFIGURE,
        "nvidia-modprobe -c 0 (once for every GPU), or nvidia-ctk system create-device-nodes --control-devices",
    ),
    needs=NODES,
)
def nodes(host: HostFacts, context: Context) -> CheckOutcome:
    """A GPU has no device node, so no program can open it."""
    nodes = [d for d in host.devices if GPU_NODE.fullmatch(d.path)]
    control = [d for d in host.devices if d.path == "/dev/nvidiactl"]
    if not control:
        return Finding(
            "/dev/nvidiactl is missing",
            evidence="ls /dev/nvidiactl finds nothing",
            remedy=Remedy(RepairAction.CONFIGURE, MAKE_NODES),
            entities=pci(*(d.address for d in host.gpus)),
        )
    if len(nodes) < len(host.driver.gpus):
        return Finding(
            f"{len(nodes)} device nodes for {len(host.driver.gpus)} GPUs",
            evidence=f"/dev has {listing((d.path for d in nodes), 8) or 'no /dev/nvidia0'}; "
            f"/proc/driver/nvidia/gpus has {len(host.driver.gpus)} GPUs",
            remedy=Remedy(RepairAction.CONFIGURE, MAKE_NODES),
        )
    odd = [d for d in (*control, *nodes) if d.major != NVIDIA_MAJOR]
    if not odd:
        return None
    return Finding(
        f"{listing(d.path for d in odd)} is not NVIDIA's device",
        evidence=f"{odd[0].path} has major {odd[0].major}, nvidia has {NVIDIA_MAJOR}",
        remedy=Remedy(RepairAction.CONFIGURE, f"{typed('rm', odd[0].path)}; {MAKE_NODES}"),
    )


@check(
    "dev.container",
    Severity.ERROR,
    title="a container has the devices and libraries of its host's driver",
    reads="/dev/nvidiactl, and ldconfig -p against the loaded module",
    remedy=GIVEN,
    needs=(needs.container, needs.gpu, needs.loaded, needs.read("devices", "ldconfig")),
)
def given(host: HostFacts, context: Context) -> CheckOutcome:
    """A running container was not given its host's GPUs, or has no libraries of its host's driver."""
    path = next(iter(host.driver.libraries.get("libcuda.so.1", ())), None)
    version = driver_version(path.rpartition("/")[2]) if path else None
    wrong = [] if any(d.path == "/dev/nvidiactl" for d in host.devices) else ["/dev/nvidiactl is missing"]
    if path is None:
        wrong.append("the loader finds no libcuda.so.1")
    elif version not in (None, host.driver.loaded):
        wrong.append(f"{path} is of {version}, and {host.driver.loaded} is loaded")
    if not wrong:
        return None
    return Finding("the container cannot use its host's GPUs", evidence="; ".join(wrong), remedy=GIVEN)


@check(
    "dev.uvm",
    Severity.WARNING,
    title="/dev/nvidia-uvm belongs to the running module",
    reads="/dev/nvidia-uvm against /proc/devices",
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-modprobe -u -c 0"),
    needs=NODES,
)
def uvm(host: HostFacts, context: Context) -> CheckOutcome:
    """CUDA finds no /dev/nvidia-uvm, or a stale one."""
    node = next((d for d in host.devices if d.path == "/dev/nvidia-uvm"), None)
    if host.uvm_major is None:
        return NotApplicable("nvidia_uvm is not loaded (drv.uvm-loaded)")
    if node is None:
        return Finding(
            "/dev/nvidia-uvm is missing",
            evidence=f"/proc/devices has nvidia-uvm as {host.uvm_major}, /dev has no node for it",
            remedy=Remedy(RepairAction.CONFIGURE, "nvidia-modprobe -u -c 0"),
        )
    if node.major == host.uvm_major:
        return None
    return Finding(
        "/dev/nvidia-uvm is a stale node",
        evidence=f"its major is {node.major}, /proc/devices has nvidia-uvm as {host.uvm_major}",
        remedy=Remedy(RepairAction.CONFIGURE, "rm /dev/nvidia-uvm /dev/nvidia-uvm-tools; nvidia-modprobe -u -c 0"),
        severity=Severity.ERROR,
    )


@check(
    "dev.modes",
    Severity.ERROR,
    title="users may open the device nodes",
    reads="modes of /dev/nvidia*; DeviceFileMode in /proc/driver/nvidia/params",
    remedy=Remedy(
        RepairAction.CONFIGURE, "options nvidia NVreg_DeviceFileMode=0666 in /etc/modprobe.d/nvidia.conf, then reboot"
    ),
    needs=NODES,
)
def modes(host: HostFacts, context: Context) -> CheckOutcome:
    """Only root may open the GPUs."""
    found = [d for d in host.devices if GPU_NODE.fullmatch(d.path) or d.path in ("/dev/nvidiactl", "/dev/nvidia-uvm")]
    if not found:
        return NotApplicable("there are no device nodes (dev.nodes)")
    closed = [d for d in found if d.mode & 0o666 != 0o666]
    # The module makes the nodes with this mode: one that differs from the default was an administrator's decision.
    decided = host.driver.params.get("DeviceFileMode", "").strip()
    if not closed or (decided.isdecimal() and all(d.mode == int(decided[:9]) for d in closed)):
        return None
    first = closed[0]
    return Finding(
        f"{listing(d.path for d in closed)} is not open to everybody",
        evidence=f"{first.path} has mode {first.mode:04o}, DeviceFileMode is {decided or 'not set'}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            f"{typed('chmod', '0666', first.path)}; options nvidia NVreg_DeviceFileMode=0666 "
            "in /etc/modprobe.d/nvidia.conf makes it permanent",
        ),
        severity=Severity.WARNING if first.mode & 0o060 == 0o060 else None,
    )


@check(
    "dev.caps",
    Severity.ERROR,
    title="/dev/nvidia-caps has the nodes of every MIG instance",
    reads="/dev/nvidia-caps/nvidia-cap* against mig_devices in nvidia-smi -q -x",
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-smi -L as root makes them; ls -l /dev/nvidia-caps shows them"),
    needs=(*NODES, needs.smi_ran),
)
def caps(host: HostFacts, context: Context) -> CheckOutcome:
    """A MIG instance has no capability nodes: programs and containers that were given it find no device."""
    smi = host.driver.smi
    apart = [gpu for gpu in smi.gpus if gpu.mig_mode == "Enabled" and gpu.health.use.mig_devices] if smi else []
    if not apart:
        return NotApplicable("no GPU has MIG instances")
    nodes = [d.path for d in host.devices if CAPABILITY.fullmatch(d.path) and d.minor not in FOR_ADMINS]
    # One for each GPU instance, and one for each compute instance in it, which are what nvidia-smi counts.
    least = sum(gpu.health.use.mig_devices or 0 for gpu in apart) + len(apart)
    if len(nodes) >= least:
        return None
    return Finding(
        f"{len(nodes)} of at least {least} capability nodes of MIG instances are there",
        evidence=f"/dev/nvidia-caps: {listing(nodes, 8) or 'no node of an instance'}",
        remedy=Remedy(RepairAction.CONFIGURE, "nvidia-smi -L as root makes them; then start again what needs them"),
        entities=pci(*(gpu.pci_address for gpu in apart if gpu.pci_address)),
    )


@check(
    "dev.selinux",
    Severity.ERROR,
    title="SELinux keeps neither the module nor containers from the GPUs",
    reads="/sys/fs/selinux/enforce and booleans/container_use_devices; the kernel log: avc: denied",
    remedy=Remedy(RepairAction.CONFIGURE, "setsebool -P container_use_devices on"),
    needs=(needs.gpu, needs.machine, needs.kernel_log),
)
def selinux(host: HostFacts, context: Context) -> CheckOutcome:
    """SELinux has refused the driver's module, or a container's use of a GPU.

    Only what it has refused is a finding: which containers it confines is the engine's decision, and an auditd that
    runs keeps refusals in a log of its own.
    """
    if host.security.selinux != "Enforcing":
        known = host.security.selinux is not None
        return None if known else NotApplicable("whether SELinux enforces is not known")
    denied = [found for line in host.driver.kernel_log if (found := DENIED.match(line))]
    if not denied:
        allowed = "SELinux enforces; what it refuses is in auditd's log, where one runs (ausearch -m avc)"
        return None if host.security.containers_may else NotApplicable(allowed)
    what = denied[-1]["what"].strip()
    of_module = what in ("module_load", "module_request")
    return Finding(
        f"SELinux refuses {'the driver its module' if of_module else 'a program the use of a GPU'} ({what})",
        evidence=f"kernel log: avc: denied {{ {what} }}, {len(denied)} × about {denied[-1]['about']}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "restorecon -Rv /lib/modules gives the modules their labels again; then modprobe nvidia"
            if of_module
            else "setsebool -P container_use_devices on lets containers use devices that they were given",
        ),
    )


@check(
    "dev.char-symlinks",
    Severity.WARNING,
    title="containers keep their GPUs across systemctl daemon-reload",
    reads="/dev/char/MAJOR:MINOR; the engines' cgroup driver; mode in the toolkit's config.toml",
    remedy=Remedy(RepairAction.CONFIGURE, "nvidia-ctk system create-dev-char-symlinks --create-all"),
    needs=(*NODES, needs.engine, needs.toolkit),
)
def char_symlinks(host: HostFacts, context: Context) -> CheckOutcome:
    """After `systemctl daemon-reload` running containers lose their GPUs: Failed to initialize NVML: Unknown Error."""
    if not any(any(engine.systemd_cgroup.values()) for engine in host.runtimes):
        return NotApplicable("no engine is known to use systemd's cgroups")
    mode = setting(host.file(TOOLKIT_CONFIG), TOOLKIT_MODE) or "auto"
    by_cdi = at_least(host.toolkit.version, first_with("toolkit", "cdi-by-default"))
    if mode in ("cdi", "jit-cdi") or (mode == "auto" and by_cdi):
        return None
    bare = [d for d in host.devices if GPU_NODE.fullmatch(d.path) and not d.char_link]
    if not bare:
        return None
    return Finding(
        f"{listing(d.path for d in bare)} has no link in /dev/char",
        evidence=f"/dev/char/{bare[0].major}:{bare[0].minor} is absent; toolkit {host.toolkit.version}, mode {mode}",
        remedy=Remedy(
            RepairAction.CONFIGURE,
            "nvidia-ctk system create-dev-char-symlinks --create-all, or a toolkit from 1.18 on (",
            setup("--only", "toolkit"),
            ")",
        ),
    )
