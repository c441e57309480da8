"""What was observed on a host, for a person: one label a line, what is not known shown as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gpunode.model.facts import HostFacts, IgnoredProcess, PciDevice, RuntimeFacts
from gpunode.model.smi import SmiFacts
from gpunode.render.clean import clean
from gpunode.render.style import PLAIN, Style, hang, paint
from gpunode.render.wording import count, size

LABEL = 12
_FAULTS = {"lost": ", lost", "reset-required": ", requires a reset", "error": ", with unreadable fields"}


def detect_text(
    host: HostFacts, style: Style = PLAIN, *, names: Mapping[str, str] | None = None, system: str | None = None
) -> str:
    """The host in lines, no newline at the end.

    `names`: PCI address -> what the device is called ("H100 SXM5 80GB"). `system`: "Debian 12", where the catalog
    knows it, so that a plan names it alike.
    """
    system = system or host.os.pretty_name or host.os.id or "unknown system"
    head = " · ".join((system, f"Linux {host.kernel.release or '(none)'}", _where(host)))
    name = clean(host.target)
    rows = (
        ("GPUs", _gpus(host, names or {})),
        ("Driver", _driver(host)),
        ("Kernel", _kernel(host)),
        ("Toolkit", host.toolkit.version or "not installed"),
        ("Runtimes", "\n".join(map(_runtime, host.runtimes)) or "none found"),
        ("Kubernetes", _kubernetes(host)),
        ("Packages", _packages(host)),
        ("Security", _security(host)),
        ("Ignored", "\n".join(map(_ignored, host.ignored))),
        ("Not known", "\n".join(f"{section}: {why}" for section, why in sorted(host.unread.items()))),
    )
    lines = hang(style, paint(style, "head", name) + "   ", head, lead_width=len(name) + 3)
    lines.append("")
    for label, text in rows:
        if text:
            lines += hang(style, f"{label:<{LABEL}}", text)
    if style.verbose > 0:
        lines += ["", *(f"  {_device(d, names or {})}" for d in host.pci)]
    return "\n".join(lines)


def _where(host: HostFacts) -> str:
    if host.init == "chroot":
        return f"{host.os.machine}, an image that is being built"
    place = f"in {host.virtualization}" if host.virtualization else "bare metal"
    return f"{host.os.machine}, {place}"


def _name(device: PciDevice, names: Mapping[str, str]) -> str:
    return names.get(device.address) or device.name or f"NVIDIA {device.vendor}:{device.device}"


def _gpus(host: HostFacts, names: Mapping[str, str]) -> str:
    if not host.gpus:
        return "none"
    smi = {g.pci_address: g for g in host.driver.smi.gpus} if host.driver.smi else {}
    kinds: Counter[tuple[str, str]] = Counter()
    for gpu in host.gpus:
        seen = smi.get(gpu.address)
        memory = f", {size(seen.memory_total_bytes)}" if seen and seen.memory_total_bytes else ""
        sick = _FAULTS.get(seen.fault or "", "") if seen else ""
        kinds[_name(gpu, names) + memory + sick, f"driver {gpu.driver}" if gpu.driver else "no driver bound"] += 1
    lines = [f"{number} × {name}, {bound}" for (name, bound), number in kinds.items()]
    switches = sum(d.vendor == "10de" and d.class_code == "0680" for d in host.pci)
    return "\n".join(lines + ([f"{switches} × NVSwitch"] if switches else []))


def _driver(host: HostFacts) -> str:
    driver = host.driver
    parts = []
    if driver.loaded:
        parts.append(f"{driver.loaded} loaded{f' ({driver.loaded_flavour})' if driver.loaded_flavour else ''}")
    if driver.installed and driver.installed != driver.loaded:
        parts.append(f"{driver.installed} installed, not loaded")
    if driver.smi:
        parts.append(_smi(driver.smi))
    if driver.container:
        parts.append("owned by a driver container")
    return " · ".join(parts) or "not installed"


def _smi(smi: SmiFacts) -> str:
    message = f": {smi.message}" if smi.message else ""
    if not smi.answered:
        return f"nvidia-smi ended with {smi.code}{message}"
    healthy = f"{len(smi.gpus) - len(smi.lost)} of " if smi.lost else ""
    cuda = f", CUDA {smi.cuda_version}" if smi.cuda_version else ""
    answer = f"nvidia-smi answers for {healthy}{count(len(smi.gpus), 'GPU')}{cuda}"
    return answer if smi.code == 0 else f"{answer} (it ended with {smi.code}{message})"


def _kernel(host: HostFacts) -> str:
    kernel = host.kernel
    parts = [f"{t.release} {'has' if t.headers else 'lacks'} headers" for t in kernel.trees]
    if kernel.next_boot and kernel.next_boot != kernel.release:
        parts.append(f"{kernel.next_boot} boots next")
    holders = sorted(kernel.modules & {"nouveau", "nova_core", "vfio_pci"})
    return " · ".join(parts + ([f"loaded: {', '.join(holders)}"] if holders else []))


def _runtime(runtime: RuntimeFacts) -> str:
    name = f"rootless {runtime.label}" if runtime.user else runtime.name
    state = ("running" if runtime.active else "not running") if runtime.unit else "without a daemon"
    default = f", default {runtime.effective_default} ({runtime.effective_source})" if runtime.effective_default else ""
    embedded = f" {runtime.embedded_in}: containerd" if runtime.embedded_in else ""
    return f"{name}{embedded} {runtime.version or '(version not known)'}, {state}{default}, {runtime.config_path}"


def _ignored(process: IgnoredProcess) -> str:
    return clean(f"a process called {process.comm} (pid {process.pid}): {process.why}")


def _kubernetes(host: HostFacts) -> str:
    kubernetes = host.kubernetes
    if not kubernetes.kubelet:
        return kubernetes.distribution or "no kubelet"
    driver = kubernetes.kubelet_cgroup_driver or "not known"
    return f"kubelet{f' of {kubernetes.distribution}' if kubernetes.distribution else ''}, cgroup driver {driver}"


def _packages(host: HostFacts) -> str:
    packages = host.packages
    if packages.manager is None:
        return "no package manager that gpunode knows"
    held = f", {len(packages.held)} pinned" if packages.held else ""
    lock = f", locked by {packages.lock_holder}" if packages.lock_holder else ""
    return f"{packages.manager}{held}{lock}"


def _security(host: HostFacts) -> str:
    words = {True: "on", False: "off", None: "not known"}
    parts = [f"Secure Boot {words[host.security.secure_boot]}"]
    if host.security.selinux:
        parts.append(f"SELinux {host.security.selinux.lower()}")
    if host.security.lockdown and host.security.lockdown != "none":
        parts.append(f"kernel lockdown {host.security.lockdown}")
    return " · ".join(parts)


def _device(device: PciDevice, names: Mapping[str, str]) -> str:
    bound = device.driver or "no driver"
    return f"{device.address}  {device.vendor}:{device.device}  {device.class_code}  {bound}  {_name(device, names)}"
